// Package e2e lists the images that Kubernetes' own test suite needs and nobody else. They are not part of the product:
// test/conformance/lab is a program that has them.
package e2e

import (
	"github.com/aiopslab/aiopslab/image/e2e/agnhost"
	"github.com/aiopslab/aiopslab/image/e2e/dnsutils"
	"github.com/aiopslab/aiopslab/image/e2e/nonewprivs"
	"github.com/aiopslab/aiopslab/image/e2e/nonroot"
	"github.com/aiopslab/aiopslab/image/e2e/resourceconsumer"
	"github.com/aiopslab/aiopslab/kit"
)

// Images are the images of the suite, with the tools, by name, in /bin.
func Images(tools map[string]kit.Program) []kit.Image {
	return []kit.Image{
		agnhost.Image(tools),
		agnhost.Nautilus(tools),
		agnhost.Kitten(tools),
		nonewprivs.Image(tools),
		nonroot.Image(tools),
		dnsutils.Image(tools),
		resourceconsumer.Image(tools),
	}
}
