// Package wazero stands for the WebAssembly runtime, which is not linked: it declares what Helm
// prepares for a plugin, and does nothing.
package wazero

import "io"

// CompilationCache would hold compiled modules.
type CompilationCache struct{}

// NewCompilationCacheWithDir returns a cache of nothing. The directory is not touched.
func NewCompilationCacheWithDir(string) (CompilationCache, error) { return CompilationCache{}, nil }

// ModuleConfig would be what a module sees.
type ModuleConfig struct{}

// NewModuleConfig returns a configuration that every option leaves as it is.
func NewModuleConfig() ModuleConfig { return ModuleConfig{} }

// WithSysWalltime would show a module the time.
func (c ModuleConfig) WithSysWalltime() ModuleConfig { return c }

// WithStdin would be a module's standard input.
func (c ModuleConfig) WithStdin(io.Reader) ModuleConfig { return c }

// WithStdout would be a module's standard output.
func (c ModuleConfig) WithStdout(io.Writer) ModuleConfig { return c }

// WithStderr would be a module's standard error.
func (c ModuleConfig) WithStderr(io.Writer) ModuleConfig { return c }

// WithEnv would set a variable of a module.
func (c ModuleConfig) WithEnv(string, string) ModuleConfig { return c }

// RuntimeConfig would be how modules are run.
type RuntimeConfig struct{}

// NewRuntimeConfigCompiler returns a configuration that every option leaves as it is.
func NewRuntimeConfigCompiler() RuntimeConfig { return RuntimeConfig{} }

// WithCloseOnContextDone would end a module with its context.
func (c RuntimeConfig) WithCloseOnContextDone(bool) RuntimeConfig { return c }

// WithCompilationCache would keep what is compiled.
func (c RuntimeConfig) WithCompilationCache(CompilationCache) RuntimeConfig { return c }
