package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/image/oci"
	"github.com/aiopslab/aiopslab/internal/builtin"
	"github.com/aiopslab/aiopslab/kit"
)

// containerProgram is the program that real containers run, if it is beside this one. It is smaller, and has no
// problems in it.
const containerProgram = "labapp"

type imagesBuildFlags struct {
	file, push, containerd, namespace string
	binaries                          []string
	plainHTTP, self                   bool
}

func newImagesBuild(s *State) *cobra.Command {
	f := &imagesBuildFlags{}
	c := &cobra.Command{
		Use:   "build (-o FILE | --push PREFIX | --containerd SOCKET) [IMAGE...]",
		Short: "Make real container images, for a cluster of your own",
		Long: `Make real container images, so that a cluster without a registry runs the
applications, their stores and the telemetry. No Docker is needed. Without
arguments, all images that the applications, problems and telemetry use are made,
under the names that the manifests have; with arguments, those instead.

The images share one layer, which is the program labapp beside aiopslab, or else
aiopslab itself. The same program gives the same bytes.

With --self, the image is aiopslab as it is: for pods that run it, such as those
of 'aiopslab verify --on cluster'.`,
		Example: `  aiopslab images build -o images.tar
  kind load image-archive images.tar
  aiopslab images build -o - | ssh node ctr -n k8s.io images import -
  aiopslab images build --push registry.example/lab
  aiopslab images build --self --push registry.example/lab
  aiopslab images build --containerd /run/containerd/containerd.sock`,
		RunE: func(c *cobra.Command, args []string) error { return s.buildImages(c.Context(), f, args) },
	}
	flags := c.Flags()
	flags.StringVarP(&f.file, "output", "o", "", "`file` for an archive as docker save writes it; - is standard output")
	flags.StringVar(&f.push, "push", "", "`prefix` of a registry to push to, as registry.example/lab")
	flags.BoolVar(&f.plainHTTP, "plain-http", false, "speak HTTP to the registry; one on this machine needs no flag")
	flags.StringVar(&f.containerd, "containerd", "", "`socket` of a containerd to import into, with its program ctr")
	flags.StringVar(&f.namespace, "namespace", oci.DefaultNamespace, "`namespace` of containerd; Kubernetes has k8s.io")
	flags.StringSliceVar(&f.binaries, "binary", nil,
		"static Linux `program` that calls lab.Main, by default as above; one for each architecture that nodes have")
	flags.BoolVar(&f.self, "self", false,
		"make the image of this program itself, "+oci.ProgramName+", for campaigns and a server in a cluster")
	s.dirs.addTo(flags, s, true)
	return c
}

// buildSelf makes the image of this program, or of those that are named.
func (s *State) buildSelf(ctx context.Context, f *imagesBuildFlags, refs []string) error {
	if len(refs) > 0 {
		return fail(ExitUsage, fmt.Errorf("--self and %s are two images", refs[0]), "Build them in two steps.")
	}
	binaries := f.binaries
	if len(binaries) == 0 {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		binaries = []string{self}
	}
	var sets []*oci.Set
	for _, binary := range binaries {
		set, err := oci.Program(binary)
		if err != nil {
			return fail(ExitError, err, "--binary names another program.")
		}
		sets = append(sets, set)
	}
	set, err := oci.Join(sets...)
	if err != nil {
		return fail(ExitError, err, "")
	}
	return s.deliverImages(ctx, f, set)
}

func (s *State) buildImages(ctx context.Context, f *imagesBuildFlags, refs []string) error {
	if f.file == "" && f.push == "" && f.containerd == "" {
		return fail(ExitUsage, errors.New("nothing says where the images go"),
			"Give it -o images.tar, --push REGISTRY/PREFIX or --containerd "+oci.DefaultSocket+".")
	}
	if err := f.checkPlaces(); err != nil {
		return err
	}
	if f.self {
		return s.buildSelf(ctx, f, refs)
	}
	registry := s.Parts.AllImages()
	if len(refs) == 0 {
		l, err := s.library()
		if err != nil {
			return err
		}
		if refs, err = builtin.References(l, registry); err != nil {
			return err
		}
	}
	var errs []error
	for _, ref := range refs {
		if _, _, err := registry.Resolve(ref); err != nil {
			errs = append(errs, explainImage(ref, registry.Tags(ref), err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fail(ExitUsage, err, "Run 'aiopslab images' to see all there are.")
	}
	set, err := s.buildSet(f.binaries, registry, refs)
	if err != nil {
		return fail(ExitError, err, "--binary names another program.")
	}
	return s.deliverImages(ctx, f, set)
}

// pushHint is what to do where images cannot be pushed.
const pushHint = "'docker login' keeps who may push; --plain-http is for a registry without TLS."

// checkPlaces looks whether there is a place for the images, before seconds go into making them.
func (f *imagesBuildFlags) checkPlaces() error {
	if f.file != "" && f.file != "-" {
		if _, err := os.Stat(filepath.Dir(f.file)); err != nil {
			return err
		}
	}
	if f.push != "" {
		if _, err := kit.Under(f.push, oci.ProgramName); err != nil {
			return fail(ExitError, err, pushHint)
		}
	}
	if f.containerd != "" {
		if _, err := oci.FindContainerd(f.containerd); err != nil {
			return err
		}
	}
	return nil
}

// buildSet makes the images of each program, or of the one that is there.
func (s *State) buildSet(binaries []string, registry *kit.Registry, refs []string) (*oci.Set, error) {
	if len(binaries) == 0 {
		binary, err := s.imageBinary()
		if err != nil {
			return nil, err
		}
		binaries = []string{binary}
	}
	var sets []*oci.Set
	for _, binary := range binaries {
		set, err := oci.Build(binary, registry, refs)
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
	}
	return oci.Join(sets...)
}

// imageBinary is the program that containers run.
func (s *State) imageBinary() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	beside := filepath.Join(filepath.Dir(self), containerProgram)
	if fi, err := os.Stat(beside); err == nil && fi.Mode().IsRegular() && len(s.Parts.Images) == 0 {
		return beside, nil
	}
	return self, nil
}

// deliverImages puts the images where the flags say, and tells of each.
func (s *State) deliverImages(ctx context.Context, f *imagesBuildFlags, set *oci.Set) error {
	images, err := set.Images()
	if err != nil {
		return err
	}
	out := s.Stdout
	if f.file == "-" {
		out = s.Stderr
	}
	var done []string
	if f.file != "" {
		if err := writeArchive(s.Stdout, f.file, set); err != nil {
			return err
		}
		done = append(done, "in "+f.file)
	}
	if f.push != "" {
		if err := set.Push(ctx, f.push, f.plainHTTP, func(string) {}); err != nil {
			return fail(ExitError, err, pushHint)
		}
		done = append(done, "in "+f.push)
	}
	if f.containerd != "" {
		if err := set.Import(ctx, f.containerd, f.namespace); err != nil {
			return err
		}
		done = append(done, "in the containerd at "+f.containerd)
	}
	for _, i := range images {
		fmt.Fprintf(out, "%s %s\n", i.Ref, i.Digest)
	}
	for _, where := range done {
		fmt.Fprintf(out, "%d images for %s are %s.\n", len(images), set.Platforms(), where)
	}
	return nil
}

// writeArchive writes the images to a file, which is there only when it is whole.
func writeArchive(stdout io.Writer, file string, set *oci.Set) error {
	if file == "-" {
		return set.WriteArchive(stdout)
	}
	w, err := os.CreateTemp(filepath.Dir(file), ".images-*.tar")
	if err != nil {
		return err
	}
	defer os.Remove(w.Name()) // Once it is renamed, it is not there.
	if err := errors.Join(set.WriteArchive(w), w.Chmod(0o644), w.Close()); err != nil {
		return err
	}
	return os.Rename(w.Name(), file)
}
