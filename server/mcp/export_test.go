package mcp

import "time"

// SetTick sets how often progress is told of.
func (s *Server) SetTick(d time.Duration) { s.tick = d }
