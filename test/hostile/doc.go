// Package hostile is a standing suite of what an enemy would try: scripts that an agent could send
// to cheat, crash, exhaust, flood or read the lab. A trick is held if the lab is still there
// afterwards, showed nothing it hides, kept within its memory, and judged rightly.
//
//	results, err := hostile.Run(ctx, hostile.Options{Lab: "bin/aiopslab", Agent: "hostile-agent", Dir: dir}, tricks)
//	hostile.Print(os.Stdout, results)
//
// Tricks are documents in the directory tricks, one file for each class. Those that need no verdict
// share an environment, one after another; the others have a run each. 'make test' tries a part of
// them, 'make hostile' all.
package hostile
