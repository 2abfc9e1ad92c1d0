package campaign

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/aiopslab/aiopslab/kit"
)

// S3 is how pods get at a bucket.
type S3 struct {
	// Secret is the name of the Secret whose keys are the variables below. It may have the others as well.
	Secret   string
	Endpoint string // the URL of the store, if it is not Amazon's
	Region   string // of the bucket; us-east-1 if nobody says
}

// The variables that a pod has the keys in.
const (
	keyVariable      = "AWS_ACCESS_KEY_ID"
	secretVariable   = "AWS_SECRET_ACCESS_KEY"
	tokenVariable    = "AWS_SESSION_TOKEN"
	endpointVariable = "AWS_ENDPOINT_URL"
	regionVariable   = "AWS_REGION"
)

const (
	defaultEndpoint = "https://s3.amazonaws.com"
	defaultRegion   = "us-east-1"
	// s3Tries is how often a request is made that fails by no fault of its own.
	s3Tries = 4
)

// Check says what is wrong with how to get at a place.
func (s S3) Check(p Place) error {
	switch {
	case p.Bucket == "" && s != S3{}:
		return fmt.Errorf("--s3-secret, --s3-endpoint and --s3-region are for records in a bucket, not at %s", p)
	case p.Bucket == "":
		return nil
	case !claimName.MatchString(s.Secret):
		return fmt.Errorf("records at %s need --s3-secret, the name of the Secret with %s and %s", p, keyVariable,
			secretVariable)
	case s.Endpoint != "":
		_, err := parseEndpoint(s.Endpoint)
		return err
	}
	return nil
}

// parseEndpoint reads the URL of a store.
func parseEndpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" ||
		u.User != nil {
		return nil, fmt.Errorf("--s3-endpoint %s: want a URL such as https://minio.example:9000", text)
	}
	return u, nil
}

// bucket is a place in a store that speaks S3.
type bucket struct {
	client         *minio.Client
	endpoint, name string
	prefix         string // ends with a slash
}

// openBucket takes the keys from the variables of a pod, and asks the store nothing.
func openBucket(env *kit.Env, p Place) (*bucket, error) {
	u, err := parseEndpoint(cmp.Or(env.Getenv(endpointVariable), defaultEndpoint))
	if err != nil {
		return nil, badInput(err)
	}
	for _, v := range []string{keyVariable, secretVariable} {
		if env.Getenv(v) == "" {
			return nil, badInput(fmt.Errorf("the Secret of --s3-secret has no %s: add it", v))
		}
	}
	t := env.HTTPTransport()
	t.DisableCompression = true // The client checks what it gets.
	client, err := minio.New(u.Host, &minio.Options{
		Creds: credentials.NewStaticV4(env.Getenv(keyVariable), env.Getenv(secretVariable),
			env.Getenv(tokenVariable)),
		Secure: u.Scheme == "https", Region: cmp.Or(env.Getenv(regionVariable), defaultRegion),
		Transport: t, MaxRetries: s3Tries,
	})
	if err != nil {
		return nil, badInput(fmt.Errorf("the store at %s: %w", u, err))
	}
	return &bucket{client, u.String(), p.Bucket, p.Prefix + "/"}, nil
}

// Put asks the store to keep an object only if there is none of its name. A store that does not know how keeps the last
// one, which is whole, too.
func (b *bucket) Put(ctx context.Context, name string, data []byte) (fresh bool, err error) {
	o := minio.PutObjectOptions{ContentType: "application/octet-stream", DisableMultipart: true}
	o.SetMatchETagExcept("*")
	for range s3Tries {
		_, err = b.client.PutObject(ctx, b.name, b.prefix+name, bytes.NewReader(data), int64(len(data)), o)
		if code(err) != "ConditionalRequestConflict" { // Another is writing it at the moment.
			break
		}
	}
	if code(err) == "PreconditionFailed" {
		return false, nil
	}
	return err == nil, b.explain("write to", err)
}

func (b *bucket) Get(ctx context.Context, name string) ([]byte, error) {
	o, err := b.client.GetObject(ctx, b.name, b.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, b.explain("read", err)
	}
	defer o.Close()
	data, err := io.ReadAll(io.LimitReader(o, maxRecord+1))
	if err == nil && len(data) > maxRecord {
		err = fmt.Errorf("%s is larger than %d MiB", name, maxRecord>>20)
	}
	return data, b.explain("read", err)
}

func (b *bucket) Has(ctx context.Context, name string) (bool, error) {
	_, err := b.client.StatObject(ctx, b.name, b.prefix+name, minio.StatObjectOptions{})
	if err = b.explain("read", err); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (b *bucket) List(ctx context.Context) (names []string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for o := range b.client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix}) {
		if o.Err != nil {
			return nil, b.explain("list", o.Err)
		}
		names = append(names, strings.TrimPrefix(o.Key, b.prefix))
	}
	return names, nil
}

// code is what a store calls an error.
func code(err error) string {
	if e, ok := errors.AsType[minio.ErrorResponse](err); ok {
		return e.Code
	}
	return ""
}

// explain says what to do about an error of the store.
func (b *bucket) explain(doing string, err error) error {
	switch code(err) {
	case "NoSuchKey":
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	case "NoSuchBucket":
		return badInput(fmt.Errorf("there is no bucket %s at %s: make it, or name another with --records", b.name,
			b.endpoint))
	case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken",
		"AllAccessDisabled", "XAdminUserNotFound": // The last is Versity's, of a key that it does not know.
		return fmt.Errorf("%s does not let us %s the bucket %s: %s: the Secret of --s3-secret needs %s and %s of "+
			"somebody who may put, get and list there", b.endpoint, doing, b.name, code(err), keyVariable,
			secretVariable)
	case "":
		if err != nil {
			return fmt.Errorf("%s the bucket %s: %w: is %s where pods reach the store? --s3-endpoint says", doing,
				b.name, err, b.endpoint)
		}
		return nil
	}
	return fmt.Errorf("%s the bucket %s at %s: %s: %w", doing, b.name, b.endpoint, code(err), err)
}
