package campaign

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/kit"
)

// Store keeps files, whole or not at all. Its methods are safe for concurrent use, by many processes.
type Store interface {
	// Put keeps data under a name, unless something is there already. It says whether it did.
	Put(ctx context.Context, name string, data []byte) (fresh bool, err error)
	// Get returns what is under a name, or [fs.ErrNotExist].
	Get(ctx context.Context, name string) ([]byte, error)
	// Has reports whether something is under a name.
	Has(ctx context.Context, name string) (bool, error)
	// List returns the names, in any order.
	List(ctx context.Context) ([]string, error)
}

// planName is the name of the plan in a store, and in a ConfigMap.
const planName = "plan.json.gz"

const recordSuffix = ".jsonl"

// RecordName is the name of the record of a run.
func RecordName(index int) string { return fmt.Sprintf("%05d%s", index, recordSuffix) }

// recorded is the run whose record has a name, if it has one.
func recorded(name string) (index int, ok bool) {
	digits, found := strings.CutSuffix(name, recordSuffix)
	index, err := strconv.Atoi(digits)
	return index, found && err == nil && RecordName(index) == name
}

// Place is where the records of campaigns are: on the volume of a claim, or below a prefix of a bucket.
type Place struct {
	Claim          string
	Bucket, Prefix string
}

var (
	claimName  = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	prefixName = regexp.MustCompile(`^[A-Za-z0-9._/-]*$`)
)

// ErrPlace is the error for text that names no place.
var ErrPlace = errors.New("write it as pvc:CLAIM or s3://BUCKET/PREFIX")

// ParsePlace reads pvc:CLAIM or s3://BUCKET/PREFIX.
func ParsePlace(text string) (Place, error) {
	if claim, ok := strings.CutPrefix(text, "pvc:"); ok && claimName.MatchString(claim) {
		return Place{Claim: claim}, nil
	}
	rest, ok := strings.CutPrefix(text, "s3://")
	bucket, prefix, _ := strings.Cut(rest, "/")
	if !ok || !bucketName.MatchString(bucket) || !prefixName.MatchString(prefix) || strings.Contains(prefix, "..") {
		return Place{}, fmt.Errorf("%q is no place for records: %w", text, ErrPlace)
	}
	return Place{Bucket: bucket, Prefix: strings.Trim(prefix, "/")}, nil
}

func (p Place) String() string {
	if p.Claim != "" {
		return "pvc:" + p.Claim
	}
	return strings.TrimSuffix("s3://"+p.Bucket+"/"+p.Prefix, "/")
}

// of is where a campaign's own records are, as a pod knows it.
func (p Place) of(campaign string) string {
	if p.Claim != "" {
		return recordsDir + "/" + campaign
	}
	return p.String() + "/" + campaign
}

// openStore opens what [Place.of] names, in a pod.
func openStore(env *kit.Env, where string) (Store, error) {
	if strings.HasPrefix(where, "/") {
		return openVolume(env, where)
	}
	p, err := ParsePlace(where)
	if err != nil {
		return nil, badInput(fmt.Errorf("--store: %w", err))
	}
	return openBucket(env, p)
}
