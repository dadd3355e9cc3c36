package queries

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// Objects says how DuckDB reaches S3 object storage.
type Objects struct {
	// Endpoint is the service's host and port, Region the one that requests are signed for.
	Endpoint, Region string
	// TLS selects https. PathStyle puts the bucket into the path of a request instead of the host name.
	TLS, PathStyle bool
	// KeyID, Secret and Token sign requests; if empty, requests are not signed.
	KeyID, Secret, Token string
}

// inObjects reports whether a run is in object storage.
func inObjects(place string) bool { return strings.HasPrefix(place, "s3://") }

// objectExtension is DuckDB's extension for object storage. It is not linked into commq.
const objectExtension = "httpfs"

// openObjects lets the engine behind a connection read object storage.
func openObjects(ctx context.Context, conn *sql.Conn, o *Objects) error {
	if o == nil {
		return errors.New("a run lies in object storage, and nothing says how to reach that; copy it with commq " +
			"store pull")
	}
	file, err := extension(ctx, conn)
	if err != nil {
		return err
	}
	if err := exec(ctx, conn, "LOAD "+quote(file)); err != nil {
		return fmt.Errorf("load DuckDB's extension %s: %w", objectExtension, err)
	}
	if err := errors.Join(forgetEnvironment(ctx, conn), useProxy(ctx, conn)); err != nil {
		return err
	}
	style := "vhost"
	if o.PathStyle {
		style = "path"
	}
	secret := fmt.Sprintf("CREATE SECRET commq (TYPE s3, ENDPOINT %s, REGION %s, URL_STYLE %s, USE_SSL %t",
		quote(o.Endpoint), quote(o.Region), quote(style), o.TLS)
	if o.KeyID != "" {
		secret += ", KEY_ID " + quote(o.KeyID) + ", SECRET " + quote(o.Secret)
	}
	if o.Token != "" {
		secret += ", SESSION_TOKEN " + quote(o.Token)
	}
	if err := exec(ctx, conn, secret+")"); err != nil {
		// the engine's message could contain one
		return errors.New("tell the query engine how to reach object storage: it takes no secrets")
	}
	return nil
}

// proxyOf splits the address of a proxy into one without user and password, and these.
func proxyOf(address string) (host string, user *url.Userinfo) {
	at := strings.LastIndex(address, "@")
	if at < 0 {
		return address, nil
	}
	scheme, rest, found := strings.Cut(address[:at], "://")
	if !found {
		scheme, rest = "http", address[:at]
	}
	name, password, _ := strings.Cut(rest, ":")
	return scheme + "://" + address[at+1:], url.UserPassword(name, password)
}

// useProxy lets the engine know user and password of $HTTP_PROXY as a secret, which SQL cannot read.
func useProxy(ctx context.Context, conn *sql.Conn) error {
	proxy, user := proxyOf(os.Getenv("HTTP_PROXY"))
	if user == nil {
		return nil
	}
	password, _ := user.Password()
	secret := fmt.Sprintf("CREATE SECRET commq_proxy (TYPE http, HTTP_PROXY %s, HTTP_PROXY_USERNAME %s, "+
		"HTTP_PROXY_PASSWORD %s)", quote(proxy), quote(user.Username()), quote(password))
	if exec(ctx, conn, secret) != nil { // the engine's message could contain the password
		return errors.New("tell the query engine about the proxy of $HTTP_PROXY: it does not take it")
	}
	return nil
}

// secretSettings matches the engine's settings that may hold a secret. The extension takes some from the environment of
// the process ($AWS_SECRET_ACCESS_KEY and others), and SQL can read every setting.
const secretSettings = "(?i)access_key|secret|token|passw|credential|bearer"

// forgetEnvironment empties the settings that hold secrets. The engine's own secret, which SQL cannot read, has what is
// needed to reach the store.
func forgetEnvironment(ctx context.Context, conn *sql.Conn) error {
	rows, err := conn.QueryContext(ctx, "SELECT name FROM duckdb_settings() WHERE input_type = 'VARCHAR' AND "+
		"value <> '' AND NOT starts_with(name, 'allow') AND regexp_matches(name, "+quote(secretSettings)+") AND "+
		"name <> 'secret_directory' AND name <> 'default_secret_storage'")
	if err != nil {
		return fmt.Errorf("ask the query engine for its settings: %w", err)
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		names = append(names, name)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, name := range names {
		if exec(ctx, conn, "SET GLOBAL "+quoteName(name)+" = ''") != nil { // the engine's message could contain the secret
			return fmt.Errorf("the query engine does not let go of its setting %s", name)
		}
	}
	return nil
}

// extension returns the extension's file: in the folder $COMMQ_DUCKDB_EXTENSIONS, or where a DuckDB of this version
// has installed it.
func extension(ctx context.Context, conn *sql.Conn) (string, error) {
	var version, platform string
	if err := conn.QueryRowContext(ctx, "SELECT library_version, (SELECT platform FROM pragma_platform()) FROM "+
		"pragma_version()").Scan(&version, &platform); err != nil {
		return "", fmt.Errorf("ask the query engine for its version: %w", err)
	}
	name := objectExtension + ".duckdb_extension"
	var folders []string
	if own := os.Getenv("COMMQ_DUCKDB_EXTENSIONS"); own != "" {
		folders = append(folders, filepath.Join(own, version, platform), filepath.Join(own, version), own)
	}
	if home, err := os.UserHomeDir(); err == nil {
		folders = append(folders, filepath.Join(home, ".duckdb", "extensions", version, platform))
	}
	for _, folder := range folders {
		file := filepath.Join(folder, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return file, nil
		}
	}
	return "", fmt.Errorf("to read object storage DuckDB %s needs its extension %s for %s, and it is in none of "+
		"%s; get it with \"INSTALL %[2]s\" in a duckdb shell of that version, or from PyPI (pip install "+
		"duckdb-extension-%[2]s==%[5]s) and name its folder with $COMMQ_DUCKDB_EXTENSIONS; or copy the run with "+
		"commq store pull",
		version, objectExtension, platform, strings.Join(folders, ", "), strings.TrimPrefix(version, "v"))
}
