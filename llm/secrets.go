package llm

import (
	"regexp"
	"strings"
)

// redacted stands where a secret was.
const redacted = "[redacted]"

// leastSecret is how long a key must be to be one. Endpoints of one's own are given keys like "none",
// and a reply may well have that word in it.
const leastSecret = 8

// looksSecret matches what is a key or a token by its form.
var looksSecret = regexp.MustCompile(
	`\bsk-[A-Za-z0-9_-]{16,}|(?i:\bbearer\s+)[A-Za-z0-9._~+/-]{8,}=*|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`)

// Redact removes secrets from a text: the given ones, and what looks like a key, a bearer token or a
// JSON web token.
func Redact(text string, secrets ...string) string {
	for _, s := range secrets {
		text = without(text, s)
	}
	return looksSecret.ReplaceAllString(text, redacted)
}

// without removes one secret.
func without(text, secret string) string {
	if len(secret) < leastSecret {
		return text
	}
	return strings.ReplaceAll(text, secret, redacted)
}
