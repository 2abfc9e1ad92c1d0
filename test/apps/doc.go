// Package apps tests the applications on a cloud, the way their users, operators and observers meet
// them: through the front door, while parts of them die, and in metrics, alerts, traces, logs and
// exports.
package apps
