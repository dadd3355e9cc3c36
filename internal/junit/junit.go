// Package junit writes verdicts as JUnit's XML, which continuous integration reads.
package junit

import (
	"encoding/xml"
	"io"

	"github.com/commq/commq/internal/printable"
)

// Suite is a set of test cases.
type Suite struct {
	// Name is what CI calls the set.
	Name string
	// Cases are in the order in which CI lists them.
	Cases []Case
}

// Case is one test: it passed if it has neither a failure nor an error.
type Case struct {
	Name  string `xml:"name,attr"`
	Class string `xml:"classname,attr"`
	// Failure is what is wrong; nil means nothing.
	Failure *Problem `xml:"failure,omitempty"`
	// Error is why the test could not be done; nil means that it was.
	Error *Problem `xml:"error,omitempty"`
	// Out is what a reader may want to know besides.
	Out string `xml:"system-out,omitempty"`
}

// Problem is a failure or an error.
type Problem struct {
	// Message is one line, Type its kind, and Text all lines.
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// suites is the root of the file.
type suites struct {
	XMLName xml.Name `xml:"testsuites"`
	Suite   suite    `xml:"testsuite"`
}

type suite struct {
	Name     string `xml:"name,attr"`
	Tests    int    `xml:"tests,attr"`
	Failures int    `xml:"failures,attr"`
	Errors   int    `xml:"errors,attr"`
	Cases    []Case `xml:"testcase"`
}

// shown returns a case whose texts have their invisible characters escaped.
func (c Case) shown() Case {
	c.Name, c.Class, c.Out = printable.Line(c.Name), printable.Line(c.Class), printable.Text(c.Out)
	for _, p := range []**Problem{&c.Failure, &c.Error} {
		if *p != nil {
			*p = &Problem{printable.Line((*p).Message), printable.Line((*p).Type), printable.Text((*p).Text)}
		}
	}
	return c
}

// Write writes a suite, with the numbers of its failures and errors. Whatever the texts are, they are shown as text.
func Write(w io.Writer, s Suite) error {
	counted := suite{Name: printable.Line(s.Name), Tests: len(s.Cases)}
	for i := range s.Cases {
		counted.Cases = append(counted.Cases, s.Cases[i].shown())
		if s.Cases[i].Failure != nil {
			counted.Failures++
		}
		if s.Cases[i].Error != nil {
			counted.Errors++
		}
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(suites{Suite: counted}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
