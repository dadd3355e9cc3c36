// Package objects keeps runs in object storage with the S3 protocol. A run is the objects under PREFIX/NAME. Its
// manifest is put last, so objects without one are not a run.
package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/commq/commq/internal/bounded"
	"github.com/commq/commq/internal/disk"
	"github.com/commq/commq/internal/secrets"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Is reports whether a store's name means object storage: s3://BUCKET or s3://BUCKET/PREFIX.
func Is(store string) bool { return strings.HasPrefix(store, "s3://") }

// Access says how to reach a service. It is never printed.
type Access struct {
	// Endpoint is its host and port.
	Endpoint string
	// TLS means https.
	TLS bool
	// Region is the region that requests are signed for.
	Region string
	// PathStyle means that the bucket is the first part of a request's path instead of the host's name.
	PathStyle bool
	// KeyID, Secret and Token sign requests; when they are empty, requests are not signed.
	KeyID, Secret, Token string
}

// Store is a store in a bucket.
type Store struct {
	// URL is its name: s3://BUCKET/PREFIX, without / at the end.
	URL string
	// Access says how to reach it.
	Access Access

	bucket, prefix string
	client         *minio.Client
}

// Open returns the store of that name, without sending a request. Endpoint, region and keys come from the environment
// and the files that AWS's own tools read: $AWS_ENDPOINT_URL_S3 or $AWS_ENDPOINT_URL (default: Amazon's), $AWS_REGION
// or $AWS_DEFAULT_REGION (default: us-east-1), $AWS_ACCESS_KEY_ID with $AWS_SECRET_ACCESS_KEY, else the profile
// $AWS_PROFILE of ~/.aws/credentials.
func Open(name string) (*Store, error) {
	rest, ok := strings.CutPrefix(name, "s3://")
	bucket, prefix, _ := strings.Cut(rest, "/")
	if !ok || bucket == "" {
		return nil, fmt.Errorf("store %q: want s3://BUCKET or s3://BUCKET/PREFIX", name)
	}
	prefix = strings.TrimPrefix(path.Clean("/"+prefix), "/") // as in keys, which path.Join makes
	access, err := accessOf()
	if err != nil {
		return nil, err
	}
	lookup := minio.BucketLookupDNS
	if access.PathStyle {
		lookup = minio.BucketLookupPath
	}
	client, err := minio.New(access.Endpoint,
		&minio.Options{Creds: credentials.NewStaticV4(access.KeyID, access.Secret, access.Token), Secure: access.TLS,
			Region: access.Region, BucketLookup: lookup})
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", name, err)
	}
	s := &Store{URL: strings.TrimRight("s3://"+bucket+"/"+prefix, "/"), Access: access, bucket: bucket,
		prefix: prefix, client: client}
	return s, nil
}

func first(names ...string) string {
	for _, n := range names {
		if v := os.Getenv(n); v != "" {
			return v
		}
	}
	return ""
}

func accessOf() (Access, error) {
	a := Access{Region: first("AWS_REGION", "AWS_DEFAULT_REGION"), TLS: true}
	if a.Region == "" {
		a.Region = "us-east-1"
	}
	a.Endpoint = "s3." + a.Region + ".amazonaws.com"
	if text := first("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"); text != "" {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
			return a, fmt.Errorf("AWS_ENDPOINT_URL is %q: want http://HOST:PORT or https://HOST", secrets.Text(text))
		}
		a.Endpoint, a.TLS, a.PathStyle = u.Host, u.Scheme == "https", true
	}
	keys, err := credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{},
		&credentials.FileAWSCredentials{}}).GetWithContext(nil)
	if err != nil {
		return a, fmt.Errorf("keys for object storage: %w", err)
	}
	a.KeyID, a.Secret, a.Token = keys.AccessKeyID, keys.SecretAccessKey, keys.SessionToken
	return a, nil
}

const manifestName = "manifest.json"

// key returns the key of a file of a run.
func (s *Store) key(parts ...string) string {
	return path.Join(append([]string{s.prefix}, parts...)...)
}

// Place returns the URL of a run.
func (s *Store) Place(name string) string { return s.URL + "/" + name }

// fail adds to an error what failed and what may help.
func (s *Store) fail(doing string, err error) error {
	if err == nil {
		return nil
	}
	hint := ""
	switch minio.ToErrorResponse(err).Code {
	case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch":
		hint = "; keys come from $AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY or the profile $AWS_PROFILE of ~/.aws/credentials"
	case "NoSuchBucket":
		hint = "; make the bucket first"
	}
	if hint != "" {
		err = &hinted{err, hint}
	}
	return fmt.Errorf("%s %s: %w", doing, s.URL, err)
}

// hinted is an error of the service, whose text ends like a sentence, with what may help.
type hinted struct {
	error
	hint string
}

func (h *hinted) Error() string { return strings.TrimSuffix(h.error.Error(), ".") + h.hint }

func (h *hinted) Unwrap() error { return h.error }

// Info is a run in the store.
type Info struct {
	// Name is the run's name.
	Name string
	// Manifest is the run's manifest; nil when Err is set.
	Manifest *schema.Manifest
	// Err is why the manifest cannot be read.
	Err error
}

// List lists the runs of the store by name.
func (s *Store) List(ctx context.Context) ([]Info, error) {
	prefix := s.prefix
	if prefix != "" {
		prefix += "/"
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var infos []Info
	for o := range s.client.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{Prefix: prefix}) {
		if o.Err != nil {
			return nil, s.fail("list", o.Err)
		}
		name, folder := strings.CutSuffix(strings.TrimPrefix(o.Key, prefix), "/")
		if !folder || writer.CheckName(name) != nil {
			continue
		}
		m, err := s.Manifest(ctx, name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		infos = append(infos, Info{name, m, err})
	}
	slices.SortFunc(infos, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return infos, nil
}

// Manifest reads a run's manifest. The error is os.ErrNotExist when there is no run of that name.
func (s *Store) Manifest(ctx context.Context, name string) (*schema.Manifest, error) {
	text, err := s.read(ctx, s.key(name, manifestName))
	if err != nil {
		return nil, err
	}
	m, err := schema.ParseManifest(text)
	if err != nil {
		return nil, fmt.Errorf("%s/%s: %w", s.Place(name), manifestName, err)
	}
	return m, nil
}

func (s *Store) read(ctx context.Context, key string) ([]byte, error) {
	o, err := s.client.GetObject(ctx, s.bucket, key, minio.GetObjectOptions{})
	if err != nil {
		return nil, s.fail("read", err)
	}
	defer o.Close()
	text, err := bounded.ReadAll(o, bounded.TextBytes)
	if code := minio.ToErrorResponse(err).Code; code == "NoSuchKey" {
		return nil, fmt.Errorf("s3://%s/%s: %w", s.bucket, key, os.ErrNotExist)
	}
	return text, s.fail("read", err)
}

// Push copies the run in folder dir into the store under that name: first its files, then its manifest, so that an
// incomplete copy is not a run. It returns false when the store has the same manifest already, and an error when it has
// another one of that name. With replace it verifies the run, removes what is there, the manifest first, and copies the run in any case.
func (s *Store) Push(ctx context.Context, dir, name string, replace bool) (pushed bool, err error) {
	m, err := writer.ReadManifest(dir)
	if err != nil {
		return false, err
	}
	folder, err := os.OpenRoot(dir) // it opens nothing outside, whatever links and names the run has
	if err != nil {
		return false, err
	}
	defer folder.Close()
	text, err := folder.ReadFile(manifestName)
	if err != nil {
		return false, err
	}
	there, err := s.read(ctx, s.key(name, manifestName))
	switch {
	case err == nil && !replace && bytes.Equal(there, text):
		return false, nil
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return false, err
	case err == nil && !replace:
		return false, fmt.Errorf("another run %q is in %s; overwrite it with --replace", name, s.URL)
	}
	if replace { // what is there may be the only whole copy
		if err := writer.VerifyRun(ctx, dir); err != nil {
			return false, fmt.Errorf("%s: %w; nothing was replaced", dir, err)
		}
	}
	if err := s.remove(ctx, name); err != nil {
		return false, err
	}
	for _, t := range m.Tables {
		for _, f := range t.Files {
			if err := s.put(ctx, folder, name, &f); err != nil {
				return false, err
			}
		}
	}
	_, err = s.client.PutObject(ctx, s.bucket, s.key(name, manifestName), bytes.NewReader(text), int64(len(text)),
		minio.PutObjectOptions{ContentType: "application/json"})
	return err == nil, s.fail("write the manifest of run "+name+" to", err)
}

// put copies a file of the run in folder into the store. A link is followed only within the run: what a run of somebody
// else points to is not published.
func (s *Store) put(ctx context.Context, folder *os.Root, name string, f *schema.FileInfo) error {
	info, err := folder.Stat(filepath.FromSlash(f.Path))
	if err == nil && !info.Mode().IsRegular() { // a pipe would be waited for
		return fmt.Errorf("%s %w", filepath.Join(folder.Name(), f.Path), bounded.ErrNotRegular)
	}
	var file *os.File
	if err == nil {
		file, err = folder.Open(filepath.FromSlash(f.Path))
	}
	if err != nil {
		return fmt.Errorf("%s: %w; a run's files lie in its folder", folder.Name(), err)
	}
	defer file.Close()
	if info.Size() != f.Bytes {
		return fmt.Errorf("%s has %d bytes, the manifest says %d; commq runs check tells what is wrong", file.Name(),
			info.Size(),
			f.Bytes)
	}
	_, err = s.client.PutObject(ctx, s.bucket, s.key(name, f.Path), file, f.Bytes,
		minio.PutObjectOptions{ContentType: "application/vnd.apache.parquet"})
	return s.fail("write "+f.Path+" of run "+name+" to", err)
}

// remove removes all objects under a run's name, its manifest first.
func (s *Store) remove(ctx context.Context, name string) error {
	if err := s.client.RemoveObject(ctx, s.bucket, s.key(name, manifestName),
		minio.RemoveObjectOptions{}); err != nil && minio.ToErrorResponse(err).Code != "NoSuchKey" {
		return s.fail("remove the manifest of run "+name+" from", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var keys []string
	for o := range s.client.ListObjects(ctx, s.bucket,
		minio.ListObjectsOptions{Prefix: s.key(name) + "/", Recursive: true}) {
		if o.Err != nil {
			return s.fail("list", o.Err)
		}
		keys = append(keys, o.Key)
	}
	for _, k := range keys {
		if err := s.client.RemoveObject(ctx, s.bucket, k, minio.RemoveObjectOptions{}); err != nil {
			return s.fail("remove "+k+" from", err)
		}
	}
	return nil
}

// Remove removes a run from the store, its manifest first. It returns an error when there is no such run.
func (s *Store) Remove(ctx context.Context, name string) error {
	if _, err := s.read(ctx, s.key(name, manifestName)); err != nil {
		return err
	}
	return s.remove(ctx, name)
}

// Pull copies a run into local, a store on a file system. It appears there as a whole or not at all. A run of that
// name is an error, unless replace is set.
func (s *Store) Pull(ctx context.Context, name, local string, replace bool) error {
	if _, err := s.Manifest(ctx, name); err != nil {
		return err
	}
	return writer.Receive(local, name, replace, func(dir string) error {
		text, err := s.read(ctx, s.key(name, manifestName))
		if err != nil {
			return err
		}
		m, err := schema.ParseManifest(text)
		if err != nil {
			return err
		}
		for _, t := range m.Tables {
			for _, f := range t.Files {
				if !filepath.IsLocal(filepath.FromSlash(f.Path)) {
					return fmt.Errorf("the manifest names the file %q, which is not in the run's folder", f.Path)
				}
				if err := s.get(ctx, name, &f, filepath.Join(dir, filepath.FromSlash(f.Path))); err != nil {
					return err
				}
			}
		}
		return writeFile(filepath.Join(dir, manifestName), bytes.NewReader(text))
	})
}

// get copies a file of a run to path. It reads no more than the bytes that the manifest says, whatever is in the
// bucket.
func (s *Store) get(ctx context.Context, name string, f *schema.FileInfo, path string) error {
	o, err := s.client.GetObject(ctx, s.bucket, s.key(name, f.Path), minio.GetObjectOptions{})
	if err == nil {
		defer o.Close()
		var there minio.ObjectInfo
		there, err = o.Stat()
		if err == nil && there.Size != f.Bytes {
			return fmt.Errorf("%s/%s has %d bytes, the manifest says %d: it was changed", s.Place(name), f.Path,
				there.Size, f.Bytes)
		}
	}
	if err != nil {
		return s.fail("read "+f.Path+" of run "+name+" from", err)
	}
	if err := disk.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return s.fail("copy "+f.Path+" of run "+name+" from", writeFile(path, io.LimitReader(o, f.Bytes)))
}

// writeFile writes a new file; writer.Receive syncs it.
func writeFile(path string, from io.Reader) error {
	f, err := disk.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}
