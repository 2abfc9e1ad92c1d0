// Package guard tests the guard in front of a real API server, through the clients that agents use:
// kubectl, helm and those made of client-go.
package guard
