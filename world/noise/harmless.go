package noise

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// setting is something in the specification of a custom resource that changes neither what its operator makes of it nor
// what users get.
type setting struct {
	path  string
	value func(r *rand.Rand) any
}

// harmless are such settings by kind. A kind that is not here is written again with the mark of a release alone, and
// keeps its generation.
var harmless = map[string][]setting{
	"TidbCluster": {
		// For how long TiDB Operator waits for leaders to leave a server of TiKV that it is about to restart, and to
		// come back.
		{"tikv.evictLeaderTimeout", minutes(20, 120)},
		{"tikv.waitLeaderTransferBackTimeout", minutes(5, 30)},
		{"tikv.recoverFailover", always(false)}, // as without it
		{"tidb.service.annotations.team", one("core", "ledger", "data")},
		// What an update strategy is if nobody says.
		{"pd.statefulSetUpdateStrategy", always("RollingUpdate")},
		{"tikv.statefulSetUpdateStrategy", always("RollingUpdate")},
		{"tidb.statefulSetUpdateStrategy", always("RollingUpdate")},
		{"statefulSetUpdateStrategy", always("RollingUpdate")},
		{"enablePVReclaim", always(false)}, // as without it
	},
}

func always(v any) func(*rand.Rand) any { return func(*rand.Rand) any { return v } }

func one(of ...string) func(*rand.Rand) any {
	return func(r *rand.Rand) any { return of[r.IntN(len(of))] }
}

func minutes(from, to int) func(*rand.Rand) any {
	return func(r *rand.Rand) any { return fmt.Sprintf("%dm", from+r.IntN(to-from)) }
}

// maxSettings is how many settings of a custom resource a release changes, at most.
const maxSettings = 3

// differ gives the specification of an object, whose pods a release does not replace, a difference that makes none:
// its generation says nothing then. New pods of a StatefulSet or a DaemonSet are to be ready for some seconds more
// before they count as available: it is one of few settings that may be changed, and there are no new pods. Of a custom
// resource one to three settings change, less one if something was changed already.
func differ(r *rand.Rand, u *unstructured.Unstructured, already int) {
	switch kind := u.GetKind(); kind {
	case "StatefulSet", "DaemonSet":
		now, _, _ := unstructured.NestedInt64(u.Object, "spec", "minReadySeconds")
		_ = unstructured.SetNestedField(u.Object, now+1+r.Int64N(3), "spec", "minReadySeconds")
	default:
		n, list := 1+r.IntN(maxSettings)-already, harmless[kind]
		for _, i := range r.Perm(len(list)) {
			path := append([]string{"spec"}, strings.Split(list[i].path, ".")...)
			if _, there, err := unstructured.NestedFieldNoCopy(u.Object, path...); there || err != nil {
				continue // It may be what is wrong.
			}
			if n--; n < 0 {
				return
			}
			_ = unstructured.SetNestedField(u.Object, list[i].value(r), path...)
		}
	}
}

// toggles are flags that teams have for a time, and that no program asks for.
var toggles = []string{
	"adTargetingV2", "cartGiftNote", "checkoutExpressLane", "emailDigest", "paymentInstallments", "quoteRounding",
	"recommendationDiversity", "searchSuggestions", "shippingEstimate",
}

var flagList = regexp.MustCompile(`"flags": \{(\s*)"`)

// toggle has a file of feature flags say that some flags are on, and others off, which nobody asks for: a release turns
// flags on. Any other file stays as it is.
func toggle(r *rand.Rand, text string) string {
	at := flagList.FindStringSubmatchIndex(text)
	if at == nil || !json.Valid([]byte(text)) {
		return text
	}
	begin, between := text[:at[2]], text[at[2]:at[3]]
	names := r.Perm(len(toggles))[:2+r.IntN(3)]
	slices.Sort(names)
	var b strings.Builder
	for _, i := range names {
		fmt.Fprintf(&b, `%s%q: {"state": "ENABLED", "variants": {"on": true, "off": false}, "defaultVariant": %q},`,
			between, toggles[i], one("on", "off")(r))
	}
	return begin + b.String() + text[at[2]:]
}
