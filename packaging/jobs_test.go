package packaging

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/commq/commq/internal/about"
	"github.com/commq/commq/internal/testenv"
)

// job is a folder in which a job of continuous integration runs, with a captured program, a baseline and rules.
type job struct {
	dir string
	env map[string]string
}

// newJob makes the folder of a job. captured has the run halo.4; the baseline is of it.
func newJob(t *testing.T, commq string) *job {
	t.Helper()
	j := &job{dir: t.TempDir(), env: map[string]string{"PATH": os.Getenv("PATH"), "HOME": t.TempDir()}}
	write(t, filepath.Join(j.dir, "commq-check.yaml"), "commq_check: 1\nbaseline: baseline.yaml\nrules:\n  - name: traffic\n    same: [messages]\n", 0o644)
	store, err := filepath.Abs("../testdata/runs")
	if err != nil {
		t.Fatal(err)
	}
	j.env["COMMQ_STORE"] = store
	cmd := exec.Command(commq, "check", "--store", store, "--run", "uneven.4", "--write-baseline", "--baseline", "baseline.yaml")
	cmd.Dir = j.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("baseline: %v\n%s", err, out)
	}
	return j
}

// shell runs a script and returns what it prints and its exit status.
func (j *job) shell(t *testing.T, script string, env map[string]string) (out string, status int) {
	t.Helper()
	cmd := exec.Command("bash", "-e", "-o", "pipefail", "-c", script)
	cmd.Dir = j.dir
	for _, list := range []map[string]string{j.env, env} {
		for name, value := range list {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// breakBaseline changes the first number of the baseline.
func (j *job) breakBaseline(t *testing.T) {
	t.Helper()
	path := filepath.Join(j.dir, "baseline.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := regexp.MustCompile(`(messages: )[0-9]+`).ReplaceAll(text, []byte("${1}1"))
	if bytes.Equal(changed, text) {
		t.Fatalf("no number of messages in\n%s", text)
	}
	write(t, path, string(changed), 0o644)
}

// realRelease is a release whose commq is this one.
func realRelease(t *testing.T) (folder, commq string) {
	commq = testenv.Command(t, "..")
	return makeRelease(t, "exec "+commq+` "$@"`), commq
}

// inputs fills in expressions such as ${{ inputs.run }}.
func inputs(text string, values map[string]string) string {
	return regexp.MustCompile(`(\$\{\{|\$\[\[) *inputs\.([a-z]+) *(\}\}|\]\])`).ReplaceAllStringFunc(text, func(m string) string {
		return values[regexp.MustCompile(`inputs\.([a-z]+)`).FindStringSubmatch(m)[1]]
	})
}

// input is an input of an action or component.
type input struct {
	Type    string
	Default *string
}

// TestAction runs the steps of the GitHub Action as GitHub does, on runs that keep to the baseline and on others.
func TestAction(t *testing.T) {
	testenv.Need(t, "bash")
	var action struct {
		Inputs map[string]input
		Runs   struct {
			Using string
			Steps []struct {
				If, Shell, Run string
				Env            map[string]string
			}
		}
	}
	readYAML(t, "../action.yml", &action)
	release, commq := realRelease(t)
	j := newJob(t, commq)
	path := filepath.Join(j.dir, "github-path")
	summary := filepath.Join(j.dir, "summary")
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	j.env["GITHUB_ACTION_PATH"], j.env["RUNNER_TEMP"] = root, t.TempDir()
	j.env["GITHUB_PATH"], j.env["GITHUB_STEP_SUMMARY"] = path, summary
	values := map[string]string{"from": release, "run": "uneven.*", "store": j.env["COMMQ_STORE"]}
	for name, in := range action.Inputs {
		if _, set := values[name]; !set && in.Default != nil {
			values[name] = *in.Default
		}
	}
	if action.Runs.Using != "composite" || len(action.Runs.Steps) != 2 {
		t.Fatalf("%+v; want two steps", action.Runs)
	}
	run := func(i int) (string, int) {
		step := action.Runs.Steps[i]
		env := map[string]string{}
		for name, value := range step.Env {
			env[name] = inputs(value, values)
		}
		if strings.Contains(step.Run, "${{") {
			t.Errorf("step %d puts an expression into its script, which an input can break out of:\n%s", i, step.Run)
		}
		return j.shell(t, step.Run, env)
	}
	if out, status := run(0); status != 0 {
		t.Fatalf("exit status %d of the first step:\n%s", status, out)
	}
	added, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	j.env["PATH"] = strings.TrimSpace(string(added)) + ":" + j.env["PATH"]
	if out, _ := j.shell(t, "command -v commq", nil); out != j.env["RUNNER_TEMP"]+"/commq/bin/commq\n" {
		t.Fatalf("commq on the path: %q", out)
	}
	if out, status := run(1); status != 0 {
		t.Errorf("exit status %d of a check that passes:\n%s", status, out)
	}
	j.breakBaseline(t)
	if out, status := run(1); status != 1 || !strings.Contains(out, "::error") {
		t.Errorf("exit status %d of a check that fails:\n%s", status, out)
	}
	for _, file := range []string{summary, filepath.Join(j.dir, "commq-check.md"), filepath.Join(j.dir, "commq-check.sarif")} {
		if text, err := os.ReadFile(file); err != nil || !bytes.Contains(text, []byte("messages")) {
			t.Errorf("%s: %v\n%s", file, err, text)
		}
	}
	// a check that ends before it writes publishes no verdict of an earlier one
	before, err := os.ReadFile(summary)
	if err != nil {
		t.Fatal(err)
	}
	values["run"] = "nothing.*"
	if out, status := run(1); status != 2 {
		t.Errorf("exit status %d of a check without runs:\n%s", status, out)
	}
	if after, err := os.ReadFile(summary); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the summary of a check without runs: %v\n%s", err, bytes.TrimPrefix(after, before))
	}
	for _, file := range []string{"commq-check.md", "commq-check.sarif"} {
		if _, err := os.Stat(filepath.Join(j.dir, file)); err == nil {
			t.Errorf("%s is there after a check without runs", file)
		}
	}
}

// TestComponent runs the script of the GitLab component as GitLab does.
func TestComponent(t *testing.T) {
	testenv.Need(t, "bash", "curl")
	text, err := os.ReadFile("../templates/check.yml")
	if err != nil {
		t.Fatal(err)
	}
	var spec struct {
		Spec struct{ Inputs map[string]input }
	}
	header, body, found := strings.Cut(string(text), "\n---\n")
	if err := yaml.Unmarshal([]byte(header), &spec); err != nil || !found {
		t.Fatal(err)
	}
	release, commq := realRelease(t)
	files := http.FileServer(http.Dir(release))
	server := httptest.NewServer(http.StripPrefix("/releases/latest/download/", files))
	t.Cleanup(server.Close)
	lines := []string{`make; echo "status: ok"`, "if true; then\n  echo 'two lines'\nfi", `commq capture -n 4 -- ./halo "case #3"`}
	capture := strings.Join(lines, "\n")
	if spec.Spec.Inputs["capture"].Type == "array" { // GitLab puts one in as JSON, and a text as it is
		text, err := json.Marshal(lines)
		if err != nil {
			t.Fatal(err)
		}
		capture = string(text)
	}
	values := map[string]string{"releases": server.URL + "/releases", "run": "uneven.*", "packages": "", "capture": capture}
	for name, in := range spec.Spec.Inputs {
		if _, set := values[name]; !set && in.Default != nil {
			values[name] = *in.Default
		}
	}
	var jobs map[string]struct {
		Image     string
		Variables map[string]string
		Script    []any // of texts, and lists of texts
		Artifacts struct{ Reports map[string]string }
	}
	if err := yaml.Unmarshal([]byte(inputs(body, values)), &jobs); err != nil {
		t.Fatal(err)
	}
	described := jobs["communication"]
	j := newJob(t, commq)
	write(t, filepath.Join(j.dir, "Makefile"), "all:\n\techo built >built\n", 0o644)
	script := flat(described.Script)
	script = strings.ReplaceAll(script, "/tmp/", j.dir+"/")
	script = strings.Replace(script, "commq capture", "echo commq capture", 1) // the run is there
	if out, status := j.shell(t, script, described.Variables); status != 0 || !strings.Contains(out, about.Version()) ||
		!strings.Contains(out, "status: ok\ntwo lines\ncommq capture -n 4 -- ./halo case #3\n") {
		t.Errorf("exit status %d of a check that passes:\n%s", status, out)
	}
	j.breakBaseline(t)
	if out, status := j.shell(t, script, described.Variables); status != 1 {
		t.Errorf("exit status %d of a check that fails:\n%s", status, out)
	}
	if text, err := os.ReadFile(filepath.Join(j.dir, described.Artifacts.Reports["junit"])); err != nil ||
		!bytes.Contains(text, []byte("<failure")) {
		t.Errorf("the report: %v\n%s", err, text)
	}
}

// flat is a script of texts, of which GitLab flattens lists.
func flat(list []any) string {
	var lines []string
	for _, one := range list {
		if inner, ok := one.([]any); ok {
			lines = append(lines, flat(inner))
			continue
		}
		lines = append(lines, fmt.Sprint(one))
	}
	return strings.Join(lines, "\n")
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
