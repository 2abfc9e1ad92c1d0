package export

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"
)

// RunRow is a run in a table. What is not known is null, or empty in CSV. Times are UTC, answers are JSON.
type RunRow struct {
	Run            string    `parquet:"run"`
	Problem        string    `parquet:"problem,dict"`
	Task           string    `parquet:"task,dict"`
	App            string    `parquet:"app,dict"`
	Faults         string    `parquet:"faults,dict"` // kind and target, with "; " between them
	Agent          string    `parquet:"agent,dict"`
	Model          string    `parquet:"model,dict"`
	Seed           int64     `parquet:"seed"`
	Began          time.Time `parquet:"began,timestamp(microsecond)"`
	Ended          time.Time `parquet:"ended,timestamp(microsecond)"`
	Class          string    `parquet:"class,dict"`
	Success        bool      `parquet:"success"`
	Why            string    `parquet:"why"`
	Submitted      bool      `parquet:"submitted"`
	Answer         string    `parquet:"answer"`
	CorrectAnswer  string    `parquet:"correct_answer"`
	Seconds        *float64  `parquet:"seconds,optional"` // TTD, TTL, TTA or TTM
	Steps          int64     `parquet:"steps"`
	InvalidActions int64     `parquet:"invalid_actions"`
	Writes         *float64  `parquet:"writes,optional"`
	InTokens       *float64  `parquet:"in_tokens,optional"`
	OutTokens      *float64  `parquet:"out_tokens,optional"`
	ModelCalls     int64     `parquet:"model_calls"`
	ModelIn        int64     `parquet:"model_in_tokens"`
	ModelOut       int64     `parquet:"model_out_tokens"`
	Cost           *float64  `parquet:"cost_usd,optional"`
}

// StepRow is a step in a table.
type StepRow struct {
	Run         string    `parquet:"run,dict"`
	Problem     string    `parquet:"problem,dict"`
	Agent       string    `parquet:"agent,dict"`
	Step        int64     `parquet:"step"`
	Time        time.Time `parquet:"time,timestamp(microsecond)"` // when it was over
	Action      string    `parquet:"action,dict"`                 // empty if none could be read
	Arguments   string    `parquet:"arguments"`                   // JSON
	Response    string    `parquet:"response"`
	Observation string    `parquet:"observation"`
	Failed      bool      `parquet:"failed"`
	Thought     float64   `parquet:"thought_seconds"`
	Took        float64   `parquet:"took_seconds"`
}

// The tables: a row for each run, or for each step of a run.
var (
	Runs  = Rows{RunRow{}, runRow}
	Steps = Rows{StepRow{}, stepRows}
)

func runRow(r *Run) []any {
	row := RunRow{
		Run: r.Record.ID, Problem: cmp.Or(r.Truth.ID, r.Record.Problem), Task: string(r.Truth.Task), App: r.Truth.App,
		Faults: strings.Join(r.Truth.Faults, "; "), Agent: r.Agent(), Model: r.Model(), Seed: int64(r.Record.Seed),
		Began: r.Began.UTC(), Ended: r.Ended.UTC(), Class: string(r.Class()), Why: r.Why(),
		Submitted: r.Submission.Submitted, Answer: string(r.Submission.Answer), Steps: int64(len(r.Steps)),
		Writes: r.number("writes"), InTokens: r.number("in_tokens"),
		OutTokens: r.number("out_tokens"), ModelCalls: int64(len(r.Exchanges)),
	}
	if r.Verdict != nil {
		row.Seconds = r.Verdict.Results.Took()
	}
	row.Success, _ = r.result("success").(bool)
	if right := r.result("correct_answer"); right != nil {
		b, _ := json.Marshal(right) // It was read from JSON.
		row.CorrectAnswer = string(b)
	}
	for i := range r.Steps {
		if r.Steps[i].Action == "" {
			row.InvalidActions++
		}
	}
	u, cost := r.Usage()
	row.ModelIn, row.ModelOut, row.Cost = int64(u.In), int64(u.Out), cost
	return []any{row}
}

func stepRows(r *Run) []any {
	var rows []any
	for i := range r.Steps {
		s := &r.Steps[i]
		rows = append(rows, StepRow{
			Run: r.Record.ID, Problem: cmp.Or(r.Truth.ID, r.Record.Problem), Agent: r.Agent(), Step: int64(s.Number),
			Time: s.Time.UTC(), Action: s.Action, Arguments: string(r.Arguments(s)), Response: s.Response,
			Observation: s.Observation, Failed: s.Failed, Thought: s.Thought, Took: s.Took,
		})
	}
	return rows
}

// number is a result, if it is a number.
func (r *Run) number(key string) *float64 {
	if n, ok := r.result(key).(float64); ok {
		return &n
	}
	return nil
}
