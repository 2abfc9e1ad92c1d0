package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"
	v1 "k8s.io/api/core/v1"
)

// A node lists so many images at most, unless it is told otherwise: the biggest; and so many names of each.
const (
	listedImages = 50
	listedNames  = 5
)

// images looks which images the nodes have. Whether they can pull the others cannot be known from here.
func (e *examination) images(context.Context) Finding {
	const check = "images"
	if len(e.demand.images) == 0 || e.nodes == nil {
		return Finding{}
	}
	var missing []string
	full := false // a node may have more than it lists
	for _, image := range e.demand.images {
		for _, n := range e.nodes {
			if takesPods(&n) && !hasImage(&n, image) {
				missing = append(missing, image)
				full = full || listsNoMore(&n)
				break
			}
		}
	}
	all := count(len(e.demand.images), "image")
	found := Finding{check, OK, fmt.Sprintf("all nodes have the %s", all), ""}
	if len(missing) > 0 {
		text := fmt.Sprintf("some node lacks %d of %s, and whether it can pull them is not known", len(missing), all)
		if full {
			text = fmt.Sprintf("some node does not list %d of %s, and lists no more than %d, by %d names each",
				len(missing), all, listedImages, listedNames)
		}
		found = Finding{
			check, Warning, text + ": " + shorten(missing),
			"Load them onto the nodes with 'aiopslab images build', or push them to a registry and use --images; " +
				"all but those of the lab (aiopslab/...) are in public registries, too. ",
		}
	}
	if len(e.demand.anew) > 0 {
		found.Level = Warning
		found.Text += "; pulled anew for each container: " + shorten(e.demand.anew)
		found.Do += "Where a registry is out of reach, name a version or set imagePullPolicy: IfNotPresent."
	}
	found.Do = strings.TrimSpace(found.Do)
	return found
}

// listsNoMore tells whether a node may have images, or names of images, that it does not list.
func listsNoMore(n *v1.Node) bool {
	return len(n.Status.Images) >= listedImages ||
		slices.ContainsFunc(n.Status.Images, func(i v1.ContainerImage) bool { return len(i.Names) >= listedNames })
}

func hasImage(n *v1.Node, image string) bool {
	want := fullName(image)
	return slices.ContainsFunc(n.Status.Images, func(i v1.ContainerImage) bool {
		return slices.ContainsFunc(i.Names, func(name string) bool { return fullName(name) == want })
	})
}

// fullName is the name of an image with registry and tag.
func fullName(image string) string {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return image
	}
	return reference.TagNameOnly(named).String()
}
