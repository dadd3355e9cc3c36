package main

import (
	"encoding/json"
	"io"
	"reflect"
)

// docs/reference/json.md describes the answers of all commands in JSON; it is made from their Go types.

// printJSON writes an answer, indented. Lists and maps without members are empty, never null.
func printJSON(w io.Writer, v any) error { return encodeJSON(w, v, "  ") }

// printJSONLine writes an answer on a line of its own.
func printJSONLine(w io.Writer, v any) error { return encodeJSON(w, v, "") }

func encodeJSON(w io.Writer, v any, indent string) error {
	all := reflect.New(reflect.TypeOf(v)).Elem() // so that its parts can be set
	all.Set(reflect.ValueOf(v))
	fillLists(all)
	e := json.NewEncoder(w)
	e.SetIndent("", indent)
	e.SetEscapeHTML(false)
	return e.Encode(all.Interface())
}

// fillLists replaces each nil slice and map in a value by an empty one.
func fillLists(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fillLists(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() && v.Type().Field(i).Tag.Get("json") != "-" {
				fillLists(v.Field(i))
			}
		}
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
	case reflect.Slice:
		if v.IsNil() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		switch v.Type().Elem().Kind() {
		case reflect.Pointer, reflect.Struct, reflect.Slice, reflect.Map:
			for i := range v.Len() {
				fillLists(v.Index(i))
			}
		}
	}
}
