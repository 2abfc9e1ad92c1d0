// Package undo takes writes to the Kubernetes API back: it knows what an object was before and after a write, looks at
// what it is now, and restores what the write has changed.
//
//	u := undo.New(api)
//	for _, change := range slices.Backward(changes) {
//		o := u.Undo(ctx, change)
//		fmt.Println(o.Text, o.Left)
//	}
//	differences := u.Verify(ctx, changes)
//
// What others have written since stays: of an object that was changed, only the fields that the write has changed are
// put back. Where the API demands it, an object is deleted and created anew. What cannot be restored is said, never
// left out: see [Outcome.Left].
//
// An object that is created anew has another uid. References of owners to the old one that are restored later get the
// new one.
package undo
