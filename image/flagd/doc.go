// Package flagd is the feature flag daemon of OpenFeature as a [kit.Program], with the image that people write into
// manifests as "ghcr.io/open-feature/flagd", and the small web front end that the Astronomy Shop has for it, flagd-ui.
//
// Flags are evaluated by flagd's own core. Around it is the daemon: it watches its files, answers over gRPC, Connect
// and OFREP, tells of changes, of its health and of what it was asked for.
//
//	registry.Register(flagd.Image(tools))
//	registry.Register(flagd.UI(tools))
//
// A file is taken as a whole or not at all: while one cannot be, what was there before stays. What a rule may cost is
// bounded, since whoever can write the file writes the rules: a rule with an operator that loops over lists, or one
// that is very long, is refused with its file.
package flagd
