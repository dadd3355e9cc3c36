package testenv

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Trino starts a Trino server for the test: a coordinator that also works. Its Hive catalog accepts partitions and
// names a file by local:// and its path. The server stops with the test; if it does not start, the end of its log is
// shown. If it is not installed the test is skipped; see Need. scripts is the path of the folder scripts, catalog has
// additional lines for the catalog's properties.
func Trino(t testing.TB, scripts, catalog string) *TrinoServer {
	t.Helper()
	var why strings.Builder
	c := exec.Command(filepath.Join(scripts, "trino"), "-n")
	c.Stderr = &why
	out, err := c.Output()
	folders := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(folders) != 2 {
		Skip(t, fmt.Sprintf("no Trino server: %v: %s", err, strings.TrimSpace(why.String())))
	}
	s := &TrinoServer{server: folders[0], java: filepath.Join(folders[1], "bin", "java"), data: t.TempDir(),
		port: freePort(t), catalog: catalog}
	s.Address = fmt.Sprintf("http://test@127.0.0.1:%d?catalog=hive&schema=commq", s.port)
	s.start(t, "coordinator", s.port)
	s.wait(t)
	return s
}

// Workers starts n workers, which take part in all later queries.
func (s *TrinoServer) Workers(t testing.TB, n int) {
	t.Helper()
	for i := range n {
		s.start(t, fmt.Sprintf("worker-%d", i+1), freePort(t))
	}
	s.wait(t)
}

// TrinoServer is a coordinator with its workers.
type TrinoServer struct {
	// Address is an address for queries.Dial.
	Address            string
	server, java, data string
	catalog            string // additional properties
	port               int
	nodes              []trinoNode
}

// trinoNode is one process of the server; ended is closed when it has ended.
type trinoNode struct {
	log   string
	ended chan struct{}
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return port
}

// start starts a node.
func (s *TrinoServer) start(t testing.TB, name string, port int) {
	t.Helper()
	folder := filepath.Join(s.data, name)
	coordinator := name == "coordinator"
	heap, memory, most := "-Xmx1g", "300MB", "1GB"
	if coordinator {
		heap = "-Xmx2g"
	}
	if os.Getenv("COMMQ_TEST_LONG") != "" { // long tests have large runs
		heap, memory, most = "-Xmx8g", "4GB", "4GB"
	}
	for file, text := range map[string]string{
		"etc/config.properties": fmt.Sprintf("coordinator=%t\nnode-scheduler.include-coordinator=true\nhttp-server.http.port=%d\n"+
			"discovery.uri=http://127.0.0.1:%d\ntask.concurrency=1\nquery.max-memory=%s\nquery.max-memory-per-node=%s\n", coordinator,
			port, s.port, most, memory),
		"etc/log.properties": "io.trino=WARN\n",
		"etc/catalog/hive.properties": "connector.name=hive\nhive.metastore=file\nhive.metastore.catalog.dir=local://" + s.data + "/metastore\n" +
			"fs.native-local.enabled=true\nlocal.location=/\nhive.non-managed-table-writes-enabled=true\nhive.allow-register-partition-procedure=true\n" + s.catalog,
	} {
		file = filepath.Join(folder, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755),
			os.WriteFile(file, []byte(trinoLines(coordinator, text)), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(s.data, "metastore"), 0o755),
		os.MkdirAll(filepath.Join(folder, "plugin"), 0o755),
		os.Symlink(filepath.Join(s.server, "plugin", "hive"), filepath.Join(folder, "plugin", "hive"))); err != nil {
		t.Fatal(err)
	}
	node := trinoNode{log: filepath.Join(folder, "log"), ended: make(chan struct{})}
	log, err := os.Create(node.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	// Statements are few and small: compiling them for speed, or making several threads for each of their many steps,
	// would take longer than running them; so would checking the classes that Trino makes for each.
	c := exec.Command(s.java, heap, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:+UnlockDiagnosticVMOptions",
		"-XX:-BytecodeVerificationRemote", "-Dconfig=etc/config.properties",
		"-Dlog.levels-file=etc/log.properties",
		"-Dnode.environment=test", "-Dnode.id="+name, "-Dnode.data-dir="+filepath.Join(folder, "data"),
		"-Dnode.internal-address=127.0.0.1", "-Dnode.bind-ip=127.0.0.1",
		"-cp", filepath.Join(s.server, "lib", "*"), "io.trino.server.TrinoServer")
	c.Dir, c.Stdout, c.Stderr = folder, log, log
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // it ends with the test's process, too
	if err := c.Start(); err != nil {
		t.Fatalf("start Trino: %v", err)
	}
	s.nodes = append(s.nodes, node)
	go func() {
		c.Wait() // killed
		close(node.ended)
	}()
	t.Cleanup(func() {
		c.Process.Kill()
		<-node.ended
	})
}

// trinoLines drops the lines that a worker does not know.
func trinoLines(coordinator bool, text string) string {
	if coordinator {
		return text
	}
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "node-scheduler.") && !strings.HasPrefix(line, "query.max-memory=") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// trinoStart limits the time until all nodes are up; some ten seconds are usual.
const trinoStart = 4 * time.Minute

// wait waits until all nodes are up.
func (s *TrinoServer) wait(t testing.TB) {
	t.Helper()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for late := time.After(trinoStart); ; {
		for _, n := range s.nodes {
			select {
			case <-n.ended:
				t.Fatalf("Trino ended when it started:\n%s", tail(n.log))
			case <-late:
				t.Fatalf("Trino is not up after %s:\n%s", trinoStart, tail(n.log))
			default:
			}
		}
		if s.up() && s.active(len(s.nodes)) {
			return
		}
		<-tick.C
	}
}

// up reports whether the coordinator has started.
func (s *TrinoServer) up() bool {
	var info struct {
		Starting bool `json:"starting"`
	}
	return s.get("/v1/info", &info) && !info.Starting
}

// active reports whether the coordinator knows this number of nodes.
func (s *TrinoServer) active(nodes int) bool {
	text := "SELECT COUNT(*) FROM system.runtime.nodes WHERE state = 'active' HAVING COUNT(*) = " + fmt.Sprint(nodes)
	request, err := http.NewRequest("POST", fmt.Sprintf("http://127.0.0.1:%d/v1/statement", s.port),
		strings.NewReader(text))
	if err != nil {
		return false
	}
	request.Header.Set("X-Trino-User", "test")
	var answer struct {
		Next string  `json:"nextUri"`
		Data [][]any `json:"data"`
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	err = json.NewDecoder(response.Body).Decode(&answer)
	response.Body.Close()
	rows := 0
	for err == nil {
		rows += len(answer.Data)
		if answer.Next == "" {
			break
		}
		next := strings.TrimPrefix(answer.Next, fmt.Sprintf("http://127.0.0.1:%d", s.port))
		answer.Next, answer.Data = "", nil
		if !s.get(next, &answer) {
			return false
		}
	}
	return err == nil && rows == 1
}

func (s *TrinoServer) get(path string, into any) bool {
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", s.port, path))
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK && json.NewDecoder(response.Body).Decode(into) == nil
}

// tail returns the end of a log.
func tail(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}
