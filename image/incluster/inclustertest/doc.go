// Package inclustertest has an API server for tests of programs that talk to one from a pod. It
// lists and watches the objects a test gives it, for whoever shows the token of the pod's service
// account, and nothing else: no admission, no selectors, no writes.
//
//	w := kittest.New(t)
//	s := inclustertest.Start(t, w, "10.244.0.1")
//	m := w.Machine("program", "10.244.0.2")
//	s.Pod(m)
//	s.Set("v1", "pods", &v1.Pod{...})
//	m.Start(program.Main, "/program")
package inclustertest
