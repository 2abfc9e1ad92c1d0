package fault

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/internal/strict"
)

// Kinds returns the built-in kinds of faults, sorted by name.
func Kinds() []*Kind {
	kinds := []*Kind{
		noop(),

		misconfigK8s(),
		scalePodsToZero(),
		assignToNonExistentNode(),
		wrongBinUsage(),
		redeployWithoutPV(),

		authMissMongoDB(),
		revokeAuth(),
		storageUserUnregistered(),
		leakedCredential(),
		hostileClient(),
		misconfigApp(),
		missingRights(),
		wrongStoreAddress(),
		featureFlag(),
		modelMisconfig(),

		containerKill(),
		podFailure(),
		podKill(),

		networkLoss(),
		networkDelay(),
		networkJitter(),
		networkBandwidth(),
		networkCorrupt(),
		networkDuplicate(),
		networkPartition(),

		cpuStress(),
		memoryStress(),

		kernelFault(),
		diskWoreout(),

		overloadReplicas(),
		nonExistentStorage(),
		invalidAffinityToleration(),
		securityContextFault(),
		wrongUpdateStrategy(),
	}
	slices.SortFunc(kinds, func(a, b *Kind) int { return strings.Compare(a.Name, b.Name) })
	return kinds
}

// Find returns one of the kinds by name.
func Find(kinds []*Kind, name string) (*Kind, error) {
	var names []string
	for _, k := range kinds {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	if near := strict.Nearest(name, names); near != "" {
		return nil, fmt.Errorf("there is no fault %q; did you mean %q?", name, near)
	}
	return nil, fmt.Errorf("there is no fault %q; there are %s", name, strings.Join(names, ", "))
}
