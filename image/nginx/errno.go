package nginx

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// errnoText words an error as the C library does: "2: No such file or directory".
func errnoText(err error) string {
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return err.Error()
	}
	text := errno.Error()
	return fmt.Sprintf("%d: %s", int(errno), strings.ToUpper(text[:1])+text[1:])
}
