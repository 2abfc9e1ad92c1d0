package world

import (
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// maxOlderImages is how many earlier versions of an image were ever released.
const maxOlderImages = 3

// change takes a template one release back. It makes no difference to users.
type change func(*v1.PodTemplateSpec)

// draftChanges returns what differs between a template and its earlier releases, in a drawn order: the tag of an
// image, as long as there is such an image, a request, a setting that no program reads. There are as many as a
// workload has releases before the last, or it would show in their number of how many versions there are images.
func draftChanges(r *rand.Rand, t *v1.PodTemplateSpec, exists func(image string) bool) []change {
	if len(t.Spec.Containers) == 0 {
		return nil
	}
	list := []change{
		addEnv("RELEASE", strconv.Itoa(2000+r.IntN(400))),
		addEnv("FEATURE_FLAGS", []string{"legacy-cache", "beta-rates", "dark-mode"}[r.IntN(3)]),
		addEnv("BUILD_HOST", "ci-"+strconv.Itoa(1+r.IntN(9))),
		addAnnotation("app.kubernetes.io/build", strconv.FormatUint(r.Uint64()>>24, 16)),
		addAnnotation("app.kubernetes.io/commit", strconv.FormatUint(r.Uint64()>>32, 16)),
		scaleRequest(r),
	}
	images := Earlier(t.Spec.Containers[0].Image, exists)
	list = append(list, make([]change, len(images))...)
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	for i, c := range list {
		if c == nil { // Images become older in order, whatever comes in between.
			list[i], images = setImage(images[0]), images[1:]
		}
	}
	return list
}

// Earlier are the images of the releases before, the last one first, as far as there are such images.
func Earlier(image string, exists func(image string) bool) (images []string) {
	for image, ok := olderTag(image); ok && len(images) < maxOlderImages && exists(image); {
		images = append(images, image)
		image, ok = olderTag(image)
	}
	return images
}

func addEnv(name, value string) change {
	return func(t *v1.PodTemplateSpec) {
		c := &t.Spec.Containers[0]
		c.Env = append(c.Env, v1.EnvVar{Name: name, Value: value})
	}
}

func addAnnotation(name, value string) change {
	return func(t *v1.PodTemplateSpec) {
		if t.Annotations == nil {
			t.Annotations = map[string]string{}
		}
		t.Annotations[name] = value
	}
}

func setImage(image string) change {
	return func(t *v1.PodTemplateSpec) { t.Spec.Containers[0].Image = image }
}

// scaleRequest changes how much CPU a container asks for.
func scaleRequest(r *rand.Rand) change {
	request := resource.NewMilliQuantity(int64(10+5*r.IntN(8)), resource.DecimalSI)
	return func(t *v1.PodTemplateSpec) {
		c := &t.Spec.Containers[0]
		if limit, ok := c.Resources.Limits[v1.ResourceCPU]; ok && request.Cmp(limit) > 0 {
			*request = limit
		}
		requests := v1.ResourceList{}
		for name, q := range c.Resources.Requests {
			requests[name] = q
		}
		requests[v1.ResourceCPU] = *request
		c.Resources.Requests = requests
	}
}

var lastNumber = regexp.MustCompile(`^(.*?)(\d+)([^\d.]*)$`)

// olderTag returns an image with the tag before: the last number of its version is one less.
func olderTag(image string) (string, bool) {
	i := strings.LastIndexByte(image, ':')
	if i < 0 || strings.Contains(image[i:], "/") || strings.Contains(image, "@") {
		return "", false
	}
	m := lastNumber.FindStringSubmatch(image[i+1:])
	if m == nil {
		return "", false
	}
	n, err := strconv.Atoi(m[2])
	if err != nil || n == 0 {
		return "", false
	}
	return image[:i+1] + m[1] + strconv.Itoa(n-1) + m[3], true
}
