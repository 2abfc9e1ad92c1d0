// Package local runs a campaign on this machine: many runs, each in a process of its own, some at a time.
//
//	f, err := local.Open(ctx, "results/nightly", nil)
//	defer f.Close()
//	c := &local.Campaign{Folder: f, Runs: runs, Workers: 4, Command: command, Abandon: abandon}
//	summary, err := c.Run(ctx)
//
// The folder is all there is to a campaign's state. A run works in a directory of its own below .running, and its
// record and session file are renamed into the folder when both are whole, the record last: whatever is killed in
// between, and whenever, a run is finished or is run again. The names have a digest of the run's identity in them, so
// that the next campaign knows what it has without reading records. While a run is under way nothing in the folder
// tells its problem or its seed, for an agent that is a program might read it.
//
// One process at a time has a folder. It holds a lock on it, and so do the processes of its runs: who comes after one
// that was killed waits until these have ended, which they do when their standard input ends.
package local
