package undo

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Verify compares what writes have touched, after they were taken back, with how it was before the first of them. It
// returns what differs and is not explained: uids, resource versions, generations, times, status, managed fields and
// the accounts that controllers keep in annotations are, and so are fields that the writes did not change, which others
// have. Changes are in the order in which they were made.
func (u *Undoer) Verify(ctx context.Context, changes []Change) ([]string, error) {
	var order []Ref
	first, touched := map[Ref]map[string]any{}, map[Ref][]string{}
	for _, c := range changes {
		if c.Never != "" || c.Subresource == "status" {
			continue
		}
		for _, o := range c.Objects {
			before, after := decode(o.Before), decode(o.After)
			if _, seen := first[o.Ref]; !seen {
				order = append(order, o.Ref)
				first[o.Ref] = before
			}
			if before == nil || after == nil || terminating(after) {
				touched[o.Ref] = append(touched[o.Ref], "") // all of it
			}
			touched[o.Ref] = append(touched[o.Ref], differences("", any(judged(before)), any(judged(after)))...)
		}
	}
	var out []string
	for _, ref := range order {
		now, err := u.api.Get(ctx, ref)
		if err != nil {
			return out, fmt.Errorf("look at %s: %w", ref, err)
		}
		out = append(out, u.compare(ref, first[ref], now, touched[ref])...)
	}
	return out, nil
}

// compare says how an object differs from what it was, in what was touched.
func (u *Undoer) compare(ref Ref, was, now map[string]any, touched []string) []string {
	replaced := ref.Resource == "pods" && controller(was) != "" || ref.Resource == "jobs" && ended(was)
	switch {
	case was == nil && now == nil, replaced:
		return nil
	case was == nil:
		return []string{ref.String() + " is there, and was not"}
	case now == nil:
		return []string{ref.String() + " is not there, and was"}
	}
	want, got := u.expected(was), judged(now)
	if ref.Resource == "jobs" {
		want["spec"], got["spec"] = jobSpec(spec(want)), jobSpec(spec(got))
	}
	var out []string
	for _, path := range differences("", any(want), any(got)) {
		if slices.ContainsFunc(touched, func(t string) bool { return within(path, t) || within(t, path) }) {
			out = append(out, fmt.Sprintf("%s: %s", ref, path))
		}
	}
	return out
}

// expected is an object as it should be now: with the owners that there are now.
func (u *Undoer) expected(was map[string]any) map[string]any {
	out := judged(was)
	if refs := owners(out); len(refs) > 0 {
		metadata(out)["ownerReferences"] = adopted(refs, u.uids)
	}
	return out
}

// within reports whether a path is another, or below it.
func within(path, of string) bool {
	rest, ok := strings.CutPrefix(path, of)
	return ok && (of == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
}
