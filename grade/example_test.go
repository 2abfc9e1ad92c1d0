package grade_test

import (
	"fmt"

	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/problem"
)

// Solved is who names exactly the faulty components.
func ExampleLocalization() {
	expected := []problem.Component{{Name: "geo"}}
	for _, answer := range []any{[]any{"geo"}, []any{"geo", "rate"}, []any{"rate"}} {
		r := grade.Localization(answer, expected)
		fmt.Println(r.Success(), r["Localization Accuracy"])
	}
	// Output:
	// true 100
	// false 50
	// false 0
}
