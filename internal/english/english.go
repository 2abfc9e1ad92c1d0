// Package english keeps kubectl from loading its translations where nobody wants one. kubectl packs and parses them
// before main begins, for English as well, which takes a sixth of the time in which this program starts; and each
// kubectl of an agent is a start. It is for whoever has the main function, who imports it:
//
//	import _ "github.com/aiopslab/aiopslab/internal/english"
//
// Packages are initialised in the order of their paths as far as imports allow, so this one is before all of kubectl's
// that have a text to translate.
package english

import (
	"cmp"
	"os"
	"strings"

	"k8s.io/kubectl/pkg/util/i18n"
)

func init() {
	if err := i18n.SetLoadTranslationsFunc(load); err != nil {
		panic(err) // It is too late: another package has been first.
	}
}

// load loads kubectl's translations if the user reads another language.
func load() error {
	if !foreign(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_MESSAGES"), os.Getenv("LANG"))) {
		return nil
	}
	return i18n.LoadTranslations("kubectl", nil)
}

// foreign reports whether a locale is of a language other than English.
func foreign(locale string) bool {
	language, _, _ := strings.Cut(locale, ".")
	return language != "" && language != "C" && language != "POSIX" && !strings.HasPrefix(language, "en")
}
