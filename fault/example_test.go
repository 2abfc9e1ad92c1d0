package fault

import (
	"fmt"
	"strings"
)

// missingImageParams are the parameters: what a problem may write, with defaults and explanations.
type missingImageParams struct {
	Tag string `yaml:"tag" doc:"the tag that was never pushed"`
}

// Validate refuses what makes no sense.
func (p missingImageParams) Validate() error {
	if p.Tag == "" {
		return fmt.Errorf(`"tag" must not be empty`)
	}
	return nil
}

// missingImage is a fault of which there can be one in any service.
func missingImage() *Kind {
	return Define(Kind{
		Name:        "missing_image",
		Title:       "A service is deployed from an image that does not exist",
		Description: "The tag of a service's image is changed to one that was never pushed: ImagePullBackOff.",
		Cause:       Cause{"Virtualization", "Misconfiguration"},
		Targets:     AnyService,
		TrueFixes:   RollBackFixes,
	}, missingImageParams{Tag: "v2-rc"}, func(t Target, p missingImageParams) (Fault, error) {
		return Redeploy(t, func(spec map[string]any) error {
			name, _, _ := strings.Cut(imageOf(t), ":")
			return SetContainer(spec, "image", name+":"+p.Tag)
		})
	}, func(t Target, _ missingImageParams) []string {
		return []string{
			fmt.Sprintf("kubectl set image deployment/%s '*=%s'", t.Service, imageOf(t)),
			rollout(t.App, t.Service),
		}
	})
}

// imageOf is the image that a service is made of.
func imageOf(t Target) string {
	o, err := read(t.App)
	if err != nil {
		return ""
	}
	return o.containers(t.Service)[0].Image
}
