package session

import (
	"math/rand/v2"

	"github.com/aiopslab/aiopslab/cloud"
)

// seedCloud makes what a cloud leaves to chance begin anew, if it can.
func seedCloud(c cloud.Cloud, seed uint64) {
	if s, ok := c.(cloud.Seeder); ok {
		s.Seed(seed)
	}
}

// aftermathSeed is what is drawn from once the agent is done. What it did in its turn, and how long
// that took, has no influence on the luck of those who are served afterwards.
func aftermathSeed(seed uint64) uint64 { return rand.NewPCG(seed, 0x6166746572).Uint64() }
