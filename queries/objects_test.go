package queries

import (
	"fmt"
	"strings"
	"testing"

	"github.com/commq/commq/internal/testenv"
)

// TestSQLCannotReadThePasswordOfAProxy: the engine takes $HTTP_PROXY into a setting, for runs in a folder too.
func TestSQLCannotReadThePasswordOfAProxy(t *testing.T) {
	for proxy, want := range map[string]string{"http://ada:a-secret@of:1843@127.0.0.1:1": "http://127.0.0.1:1",
		"ada:x@127.0.0.1:1": "http://127.0.0.1:1", "http://127.0.0.1:1": "http://127.0.0.1:1",
		"127.0.0.1:1": "127.0.0.1:1"} {
		t.Setenv("HTTP_PROXY", proxy)
		d, err := connect(t.Context(), settings(Options{}, 12))
		if err != nil {
			t.Fatal(err)
		}
		got, err := column(t, d, "SELECT current_setting('http_proxy')")
		if err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("$HTTP_PROXY %s: the setting is %q, %v", proxy, got, err)
		}
		d.Close()
	}
}

// TestSQLCannotReadTheKeysOfObjectStorage opens the engine on object storage with keys in the environment, and looks
// for them everywhere a SELECT can look: in all settings, by table function and by name, in the engine's secrets, in
// its logs, variables and functions.
func TestSQLCannotReadTheKeysOfObjectStorage(t *testing.T) {
	t.Setenv("COMMQ_DUCKDB_EXTENSIONS", testenv.DuckDBExtensions(t, "../scripts"))
	const secret = "a-secret-of-1843"
	for _, name := range []string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "DUCKDB_S3_SECRET_ACCESS_KEY"} {
		t.Setenv(name, secret)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "ada")
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY"} {
		t.Setenv(name, "http://ada:"+secret+"@127.0.0.1:1")
	}
	d, err := connect(t.Context(), settings(Options{}, 12))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := openObjects(t.Context(), d.conn, &Objects{Endpoint: "127.0.0.1:1", Region: "us-east-1", KeyID: "ada",
		Secret: secret, Token: secret}); err != nil {
		t.Fatal(err)
	}
	if err := d.lock(t.Context(), []string{"/nowhere"}); err != nil {
		t.Fatal(err)
	}
	look := []string{"SELECT * FROM duckdb_settings()", "SELECT * FROM duckdb_secrets()",
		"SELECT * FROM duckdb_secrets(redact := false)",
		"SELECT * FROM which_secret('s3://jobs/x', 's3')", "SELECT * FROM duckdb_logs", "SELECT * FROM duckdb_logs()",
		"SELECT * FROM duckdb_variables()", "SELECT * FROM duckdb_temporary_files()",
		"SELECT getenv('AWS_SECRET_ACCESS_KEY')",
		"SELECT * FROM duckdb_log_contexts()", "SELECT * FROM pragma_user_agent()", "SELECT * FROM duckdb_databases()",
		"SELECT * FROM load_aws_credentials()", "SELECT * FROM read_text('/proc/self/environ')",
		"SELECT * FROM enable_logging()", "SELECT * FROM duckdb_logs"}
	names, err := column(t, d, "SELECT name FROM duckdb_settings()")
	if err != nil || len(names) < 100 {
		t.Fatalf("%d settings, %v", len(names), err)
	}
	for _, name := range names {
		look = append(look, "SELECT current_setting("+quote(name)+")")
	}
	answered := 0
	for _, text := range look {
		if err := d.checkReadOnly(t.Context(), text); err != nil {
			continue
		}
		cells, err := column(t, d, text)
		if err == nil {
			answered++
		} else {
			cells = append(cells, err.Error())
		}
		for _, cell := range cells {
			if strings.Contains(cell, secret) {
				t.Errorf("%s: %s", text, cell)
			}
		}
	}
	if answered < len(names)/2 {
		t.Errorf("%d of %d queries were answered", answered, len(look))
	}
}

// column returns the cells of all rows of an answer, a row in a text.
func column(t *testing.T, d *DB, text string) (all []string, err error) {
	t.Helper()
	rows, err := d.conn.QueryContext(t.Context(), text)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	cells, targets := make([]any, len(columns)), make([]any, len(columns))
	for i := range cells {
		targets[i] = &cells[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		if len(cells) == 1 {
			all = append(all, fmt.Sprint(cells[0]))
		} else {
			all = append(all, fmt.Sprint(cells...))
		}
	}
	return all, rows.Err()
}
