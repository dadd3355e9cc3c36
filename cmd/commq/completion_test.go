package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/internal/testenv"
)

// completed returns commq's completions of the last word.
func completed(t *testing.T, words ...string) []string {
	t.Helper()
	status, out, _ := commandLine("", append([]string{"__complete"}, words...)...)
	if status != 0 {
		t.Fatalf("%q: status %d", words, status)
	}
	var values []string
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		value, _, _ := strings.Cut(line, "\t")
		values = append(values, value)
	}
	return values
}

// TestCompletedValues: completion offers known values, or files of the right kind. The last line is the directive: 4
// nothing else, 8 files with these endings, 16 folders, 0 files, 6 nothing else and no blank after it.
func TestCompletedValues(t *testing.T) {
	store := smallStore(t)
	t.Setenv("COMMQ_STORE", store)
	for _, c := range []struct{ words, want string }{
		{"compl", "completion :4"},
		{"completion |", "bash zsh fish :4"},
		{"query den", "density :4"},
		{"query density --coll", "--collectives :4"},
		{"query density --collectives |", "rooted logical tree none :4"},
		{"query density --collectives=t", "tree :4"},
		{"query density --run |", "pair.2 ring.3 :4"},
		{"query density --run pair.2 --run r", "ring.3 :4"},
		{"query density --run ./", ":16"},
		{"query density --format |", "table csv json jsonl markdown parquet arrow :4"},
		{"query density --plot |", "png svg pdf :8"},
		{"query density --output |", ":0"},
		{"query density --limit |", ":4"},
		{"query density --where ta", "tag :6"},
		{"query density |", "pair.2 ring.3 :4"},
		{"query locality --rankmap |", "csv :8"},
		{"query locality --dims |", ":4"},
		{"query --list --format ta", "table :4"},
		{"sql --run p", "pair.2 :4"},
		{"sql --format a", "arrow :4"},
		{"report |", "pair.2 ring.3 :4"},
		{"report pair.2 |", "ring.3 :4"},
		{"report --query den", "density :4"},
		{"report -o |", "html :8"},
		{"runs show |", "pair.2 ring.3 :4"},
		{"runs show pair.2 |", "ring.3 :4"},
		{"runs check pair.2 |", "ring.3 :4"},
		{"runs check --format |", "text json :4"},
		{"runs list --format |", "table json csv :4"},
		{"runs remove r", "ring.3 :4"},
		{"capture --machine fl", "flat :0"},
		{"capture --calls MPI_Ise", "MPI_Isend MPI_Isend_c MPI_Isendrecv MPI_Isendrecv_c MPI_Isendrecv_replace MPI_Isendrecv_replace_c :4"},
		{"ingest --calls=MPI_Send,-MPI_Waita", "MPI_Send,-MPI_Waitall MPI_Send,-MPI_Waitany :4"},
		{"capture --spool |", ":16"},
		{"capture -n 3 -- |", ":0"},
		{"exec --clock |", "cpu wall none :4"},
		{"exec --mpirun-flags |", "openmpi mpich srun :4"},
		{"ingest |", ":16"},
		{"simulate --set network.lat", "network.latency_ns= :6"},
		{"watch --format |", "text json :4"},
		{"watch spool |", ":4"},
		{"doctor pa", "pair.2 :0"},
		{"capture api |", "commq.f90 commq.h :4"},
		{"--store |", ":16"},
		{"query density --store " + filepath.Join(store, "nowhere") + " --run |", ":4"},
	} {
		words := strings.Fields(c.words)
		if words[len(words)-1] == "|" {
			words[len(words)-1] = ""
		}
		got := completed(t, words...)
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %s; want %s", c.words, text, c.want)
		}
	}
}

// shellStory makes a folder with a query of the user's own and two files, and a store. It returns the environment in
// which a shell finds these and commq, and the folder.
func shellStory(t *testing.T) (env []string, dir string) {
	t.Helper()
	command, err := exec.LookPath("commq")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for _, f := range []string{"config/commq/queries/mine-too.sql", "left.csv", "left.txt"} {
		name := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		text := "-- summary: Mine.\n-- source: Me.\n-- needs: messages\n-- column n BIGINT 1: N.\n-- order: n\n-- cost: C.\nSELECT COUNT(*) AS n FROM messages ORDER BY n\n"
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return append(os.Environ(), "PATH="+filepath.Dir(command)+":"+os.Getenv("PATH"), "COMMQ_STORE="+smallStore(t),
		"XDG_CONFIG_HOME="+filepath.Join(dir, "config"), "HOME="+dir, "TERM=dumb"), dir
}

// shellLines runs a script and returns the first word of each line it prints.
func shellLines(t *testing.T, shell []string, script string) string {
	t.Helper()
	env, dir := shellStory(t)
	cmd := exec.Command(shell[0], append(shell[1:], script)...)
	cmd.Env, cmd.Dir = env, dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", shell[0], err, out)
	}
	var words []string
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if fields := strings.Fields(line); len(fields) > 0 {
			words = append(words, fields[0])
		}
	}
	return strings.Join(words, " ")
}

// TestBashCompletes loads the completion script into bash and completes command lines.
func TestBashCompletes(t *testing.T) {
	const file = "/usr/share/bash-completion/bash_completion"
	if _, err := os.Stat(file); err != nil {
		testenv.Skip(t, "bash-completion is not installed; scripts/setup test installs what the tests need")
	}
	got := shellLines(t, []string{"bash", "-c"}, `source `+file+`
source <(commq completion bash)
try() { # try WORDS...: what can stand for the last
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMPREPLY=()
	COMP_POINT=${#COMP_LINE} COMP_TYPE=9 COMP_KEY=9
	$(complete -p commq | sed 's/.*-F \([^ ]*\).*/\1/') 2>/dev/null
	printf '%s\n' "${COMPREPLY[@]}" .
}
try commq query dens
try commq query mine
try commq query density --run r
try commq query density --format=j
try commq query density --collectives ""
try commq query locality --rankmap le
true`)
	if want := "density . mine-too . ring.3 . json jsonl . rooted logical tree none . left.csv ."; got != want {
		t.Errorf("bash completes\n%s; want\n%s", got, want)
	}
}

// TestFishCompletes loads the completion script into fish and completes command lines.
func TestFishCompletes(t *testing.T) {
	testenv.Need(t, "fish")
	got := shellLines(t, []string{"fish", "--no-config", "-c"}, `commq completion fish | source
for line in "commq query dens" "commq query mine" "commq query density --run r" "commq query density --collectives " "commq query locality --rankmap le"
	complete -C "$line"
	echo .
end`)
	if want := "density . mine-too . ring.3 . logical none rooted tree . left.csv left.txt ."; got != want {
		t.Errorf("fish completes\n%s; want\n%s", got, want)
	}
}

// TestZshCompletes loads the completion script into zsh and completes command lines in a terminal of its own: a key
// prints the line that the tab key has made.
func TestZshCompletes(t *testing.T) {
	testenv.Need(t, "zsh")
	got := shellLines(t, []string{"zsh", "-f", "-c"}, `zmodload zsh/zpty
zpty -b shell zsh -f -i
zpty -w shell "stty -echo; unset zle_bracketed_paste; PS1= PROMPT_EOL_MARK=; autoload -U compinit; compinit -u -D; source <(commq completion zsh)"
zpty -w shell 'show() { print -r -- "<<${BUFFER// /_}>>"; BUFFER= }; zle -N show; bindkey "^X" show; print READY'
zpty -r shell line '*READY*'
for line in "commq query dens" "commq query mine" "commq query density --run r" "commq query density --collectives=l" "commq completion z"; do
	zpty -w -n shell "$line"$'\t\x18'
	zpty -r shell out '*<<*>>*'
	[[ $out =~ '<<(.*)>>' ]] && print -r -- $match[1]
done
zpty -d shell`)
	if want := "commq_query_density_ commq_query_mine-too_ commq_query_density_--run_ring.3_ commq_query_density_--collectives=logical_ commq_completion_zsh_"; got != want {
		t.Errorf("zsh completes\n%s; want\n%s", got, want)
	}
}
