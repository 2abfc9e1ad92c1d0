// Package extism stands for Extism's host of plugins, which is not linked: it declares what Helm
// uses of it, and starts no plugin.
package extism

import (
	"context"
	"errors"
)

// HostFunction would be a function that a plugin may call.
type HostFunction struct{}

// Manifest says what a plugin consists of, and what it may do.
type Manifest struct {
	Wasm         []Wasm
	Memory       *ManifestMemory
	Config       map[string]string
	AllowedHosts []string
	AllowedPaths map[string]string
	Timeout      uint64
}

// Wasm is a source of a plugin's code.
type Wasm any

// WasmFile is a file of code.
type WasmFile struct{ Path, Name string }

// ManifestMemory limits what a plugin may hold.
type ManifestMemory struct {
	MaxPages             uint32
	MaxHttpResponseBytes int64
	MaxVarBytes          int64
}

// PluginConfig is how a plugin is run.
type PluginConfig struct {
	ModuleConfig, RuntimeConfig           any
	EnableWasi, EnableHttpResponseHeaders bool
}

// LogLevel is how much a line of a plugin's log matters.
type LogLevel int

func (LogLevel) String() string { return "" }

// Plugin would be a plugin. There is none.
type Plugin struct{}

// NewPlugin fails.
func NewPlugin(context.Context, Manifest, PluginConfig, []HostFunction) (*Plugin, error) {
	return nil, errors.New("this helm does not run plugins in WebAssembly")
}

// SetLogger would take a plugin's log.
func (*Plugin) SetLogger(func(LogLevel, string)) {}

// Call would call a plugin.
func (*Plugin) Call(string, []byte) (uint32, []byte, error) { return 0, nil, errors.ErrUnsupported }
