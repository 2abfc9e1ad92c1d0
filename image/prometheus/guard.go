package prometheus

import (
	"fmt"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/aiopslab/aiopslab/internal/nesting"
)

// guardedParser refuses queries that nest deeper than the engine, which calls itself for each level,
// has stack for.
type guardedParser struct{ parser.Parser }

func checkQuery(text string) error {
	if err := nesting.Check(text, nesting.Query); err != nil {
		return fmt.Errorf("parse error: the expression is %w", err)
	}
	return nil
}

func (p guardedParser) ParseExpr(text string) (parser.Expr, error) {
	if err := checkQuery(text); err != nil {
		return nil, err
	}
	return p.Parser.ParseExpr(text)
}

func (p guardedParser) ParseMetricSelector(text string) ([]*labels.Matcher, error) {
	if err := checkQuery(text); err != nil {
		return nil, err
	}
	return p.Parser.ParseMetricSelector(text)
}

func (p guardedParser) ParseMetricSelectors(texts []string) ([][]*labels.Matcher, error) {
	for _, text := range texts {
		if err := checkQuery(text); err != nil {
			return nil, err
		}
	}
	return p.Parser.ParseMetricSelectors(texts)
}
