package run

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// namesListed limits the hosts, users and folders in a text.
const namesListed = 3

// userRe matches the name of a user in a path.
var userRe = regexp.MustCompile(`^/(?:home|Users|users|u)/(?:[a-z]/)?([^/]+)/`)

// Discloses says in a few words what the run in folder dir tells about the machine and its users: hosts, users, command
// and launcher line, the text of a machine's file, folders of sources and modules. A run, and what is made of it, is passed on to others. It is empty if the run
// tells nothing. m is the run's manifest. Errors come from reading the call sites.
func Discloses(ctx context.Context, dir string, m *schema.Manifest) (string, error) {
	users, folders, files := map[string]bool{}, map[string]bool{}, map[string]bool{}
	note := func(p string) {
		if !strings.HasPrefix(p, "/") || files[p] {
			return
		}
		files[p], folders[path.Dir(p)] = true, true
		if match := userRe.FindStringSubmatch(p); match != nil {
			users[match[1]] = true
		}
	}
	for _, word := range slices.Concat(m.Origin.Command, m.Origin.Launcher) {
		note(word)
	}
	machine := ""
	if s := m.Origin.Simulation; s != nil && s.Description != "" && strings.ContainsAny(s.Machine, "/.") { // not built in
		machine = s.Machine
		note(machine)
	}
	err := writer.Opened{Dir: dir, Digest: m.Digest}.ReadTable(ctx, &schema.CallsitesTable, 1<<12, func(b schema.Batch) error {
		sites := b.(*schema.Callsites)
		for i := range sites.Len() {
			note(sites.File[i])
			note(sites.Module[i])
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	var parts []string
	if hosts := slices.DeleteFunc(slices.Clone(m.Origin.Hosts),
		func(h string) bool { return h == "" }); len(hosts) > 0 {
		parts = append(parts, few("host", hosts))
	}
	if len(users) > 0 {
		parts = append(parts, few("user", sortedKeys(users)))
	}
	if len(m.Origin.Command) > 0 {
		parts = append(parts, "the command line")
	}
	if len(m.Origin.Launcher) > 0 {
		parts = append(parts, "the launcher line")
	}
	if machine != "" {
		parts = append(parts, "the text of the machine's file")
	}
	if len(files) > 0 {
		parts = append(parts, fmt.Sprintf("%s in %s", units.Count(int64(len(files)), "path"),
			few("folder", sortedKeys(folders))))
	}
	return strings.Join(parts, ", "), nil
}

// few lists the first of some names and says how many there are.
func few(what string, names []string) string {
	text := units.Count(int64(len(names)), what) + " (" + strings.Join(names[:min(len(names), namesListed)], ", ")
	if len(names) > namesListed {
		text += ", ..."
	}
	return text + ")"
}

func sortedKeys(set map[string]bool) []string {
	var all []string
	for k := range set {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}
