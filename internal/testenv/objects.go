package testenv

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
)

// ObjectStorage is an S3 server on loopback, in this process and in memory, with one bucket, which is named jobs.
type ObjectStorage struct {
	// Endpoint is its URL; KeyID and Secret sign requests, and it answers no others.
	Endpoint, KeyID, Secret string
	objects                 *s3mem.Backend
}

// bucket is the name of its only bucket.
const bucket = "jobs"

// StartObjectStorage starts an S3 server that stops with the test.
func StartObjectStorage(t testing.TB) *ObjectStorage {
	t.Helper()
	o := &ObjectStorage{KeyID: "ada", Secret: "a secret of 1843", objects: s3mem.New()}
	if err := o.objects.CreateBucket(context.Background(), bucket); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(o.objects,
		gofakes3.WithV4Auth(map[string]string{o.KeyID: o.Secret})).Server())
	t.Cleanup(server.Close)
	o.Endpoint = server.URL
	return o
}

// Has reports whether the bucket has an object with this key, or any whose key begins with it and a slash.
func (o *ObjectStorage) Has(key string) bool {
	if _, err := o.objects.HeadObject(context.Background(), bucket, key); err == nil {
		return true
	}
	below := gofakes3.NewFolderPrefix(key + "/")
	list, err := o.objects.ListBucket(context.Background(), bucket, &below, gofakes3.ListBucketPage{MaxKeys: 1})
	return err == nil && len(list.Contents)+len(list.CommonPrefixes) > 0
}

// Environment returns the variables that select the server, and clears those that would select another.
func (o *ObjectStorage) Environment() map[string]string {
	return map[string]string{"AWS_ENDPOINT_URL": o.Endpoint, "AWS_ACCESS_KEY_ID": o.KeyID,
		"AWS_SECRET_ACCESS_KEY": o.Secret,
		"AWS_ENDPOINT_URL_S3":   "", "AWS_SESSION_TOKEN": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": ""}
}

// TrinoProperties returns the lines of a Trino catalog that read from it.
func (o *ObjectStorage) TrinoProperties() string {
	return "fs.native-s3.enabled=true\ns3.endpoint=" +
		o.Endpoint + "\ns3.region=us-east-1\ns3.path-style-access=true\ns3.aws-access-key=" + o.KeyID +
		"\ns3.aws-secret-key=" + o.Secret + "\n"
}
