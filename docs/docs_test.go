// Package docs tests the documentation: its links, and the web site that is made of it.
package docs

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/commq/commq/internal/testenv"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	picture = regexp.MustCompile(`!\[[^\]]+\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.*?) *$`)
	// dropped is what the anchor of a heading lacks.
	dropped = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
)

// pages returns the text of every Markdown file of the repository by its path from here.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out, err := exec.Command("git", "-C", "..", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--",
		"*.md").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	texts := map[string]string{}
	for _, name := range strings.Split(strings.TrimRight(string(out), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join("..", name))
		if os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Join("..", name)] = string(text)
	}
	return texts
}

// anchors returns the anchors of a page's headings, as web sites of repositories make them.
func anchors(text string) map[string]bool {
	found := map[string]bool{"": true}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		title := link.ReplaceAllString(strings.ReplaceAll(m[1], "`", ""), "]")
		found[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(title), ""), " ", "-")] = true
	}
	return found
}

// TestLinksLeadSomewhere follows the links between the Markdown files and to other files of the repository.
func TestLinksLeadSomewhere(t *testing.T) {
	texts, links := pages(t), 0
	for page, text := range texts {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			path, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if info, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %s leads to no file", page, m[1])
			} else if info.IsDir() {
				t.Errorf("%s: the link %s leads to a folder; name the page in it", page, m[1])
			} else if other, ok := texts[target]; ok && !anchors(other)[anchor] {
				t.Errorf("%s: %s has no heading for the link %s", page, target, m[1])
			}
		}
	}
	if links < 200 {
		t.Errorf("found %d links in %d pages", links, len(texts))
	}
}

// TestExplanationsHaveFigures: every page of docs/method has a picture, but for those of the site's how-tos; and every
// figure of docs/figures is on a page and is drawn from what lies beside it.
func TestExplanationsHaveFigures(t *testing.T) {
	nav, err := os.ReadFile("site/mkdocs.yml")
	if err != nil {
		t.Fatal(err)
	}
	_, howTo, _ := strings.Cut(string(nav), "\n  - How-to:")
	howTo, _, _ = strings.Cut(howTo, "\n  - Reference:")
	shown := map[string]bool{}
	for page, text := range pages(t) {
		pictures := 0
		for _, m := range picture.FindAllStringSubmatch(text, -1) {
			pictures++
			shown[filepath.Join(filepath.Dir(page), m[1])] = true
		}
		name := strings.TrimPrefix(page, "../")
		if pictures == 0 && strings.HasPrefix(name, "docs/method/") && !strings.Contains(howTo, name) {
			t.Errorf("%s explains a method and has no figure", name)
		}
	}
	lanes, err := os.ReadFile("figures/lanes.py")
	if err != nil {
		t.Fatal(err)
	}
	figures, err := filepath.Glob("figures/*.svg")
	if err != nil || len(figures) < 20 {
		t.Fatalf("%d figures, %v", len(figures), err)
	}
	for _, figure := range figures {
		if !shown[filepath.Join("../docs", figure)] {
			t.Errorf("no page shows %s", figure)
		}
		svg, err := os.ReadFile(figure)
		if err != nil {
			t.Fatal(err)
		}
		decoder := xml.NewDecoder(bytes.NewReader(svg))
		for err == nil {
			_, err = decoder.Token()
		}
		if err != io.EOF {
			t.Errorf("%s: %v", figure, err)
		}
		name := strings.TrimSuffix(filepath.Base(figure), ".svg")
		if !exists("figures/"+name+".dot") && !strings.Contains(string(lanes), `figure("`+name+`"`) {
			t.Errorf("nothing draws %s", figure)
		}
	}
}

// TestSiteBuilds makes the web site, with all warnings as errors, and follows the links of its pages. It needs the
// Python packages of site/requirements.txt, which scripts/setup installs.
func TestSiteBuilds(t *testing.T) {
	testenv.Need(t, "python3", "flock", "git")
	testenv.Venv(t, "../scripts", "site/requirements.txt", "documentation site")
	folder := filepath.Join(t.TempDir(), "site")
	if out, err := exec.Command("../scripts/site", "build", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"index.html", "docs/QUERIES.html", "notebooks/1-riesen-figures.html",
		"search/search_index.js"} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	// go test keeps a result until a file changes that the test opened.
	for _, pattern := range []string{"../scripts/site", "../scripts/venv", "site/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no file %s: %v", pattern, err)
		}
		for _, f := range files {
			if _, err := os.ReadFile(f); err != nil {
				t.Fatal(err)
			}
		}
	}
	pages(t)
}
