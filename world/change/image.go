package change

import (
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"

	"github.com/distribution/reference"
)

// maxOlderImages is how many earlier versions of an image were ever released.
const maxOlderImages = 3

// Earlier are the images of the releases before, the last one first, as far as there are such images.
func Earlier(image string, exists func(image string) bool) (images []string) {
	for image, ok := stepTag(image, -1); ok && len(images) < maxOlderImages && exists(image); {
		images = append(images, image)
		image, ok = stepTag(image, -1)
	}
	return images
}

// Later is the image of the next release, or "" if there is no such image: the last number of its version is one more,
// or another number follows.
func Later(image string, exists func(image string) bool) string {
	if next, ok := stepTag(image, 1); ok && exists(next) {
		return next
	}
	if _, tag := splitTag(image); tag != "" && exists(image+".1") {
		return image + ".1"
	}
	return ""
}

var lastNumber = regexp.MustCompile(`^(.*?)(\d+)([^\d.]*)$`)

// splitTag splits an image before the colon of its tag. The tag is "" if there is none, or a digest.
func splitTag(image string) (name, tag string) {
	i := strings.LastIndexByte(image, ':')
	if i < 0 || strings.Contains(image[i:], "/") || strings.Contains(image, "@") {
		return image, ""
	}
	return image[:i], image[i+1:]
}

// stepTag returns an image with another tag: the last number of its version is so much more.
func stepTag(image string, by int) (string, bool) {
	name, tag := splitTag(image)
	m := lastNumber.FindStringSubmatch(tag)
	if m == nil {
		return "", false
	}
	n, err := strconv.Atoi(m[2])
	if err != nil || n+by < 0 {
		return "", false
	}
	return name + ":" + m[1] + strconv.Itoa(n+by) + m[3], true
}

// otherImage takes another image that does the same or, if there is none, spells the name of the same one otherwise.
func otherImage(w *World, r *rand.Rand, template map[string]any) bool {
	c := first(template)
	image, _ := c["image"].(string)
	other := ""
	if w.OtherImage != nil && r.IntN(4) > 0 {
		other = w.OtherImage(image)
	}
	if other == "" {
		other = respelled(image)
	}
	if other == "" {
		return false
	}
	c["image"] = other
	return true
}

// respelled is the name of an image with its registry, or without it; "" if it has but one name.
func respelled(image string) string {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return ""
	}
	if full := named.String(); full != image {
		return full
	}
	if short := reference.FamiliarString(named); short != image {
		return short
	}
	return ""
}
