package session

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// Abandon ends the record of a run whose process has ended before it could: the verdict is [Infra], and why. File is
// the record as far as it came; if there is none, one is made.
func Abandon(file string, p *problem.Problem, run record.Run, why string) (*Outcome, error) {
	log, err := reopen(file, run)
	if err != nil {
		return nil, err
	}
	rec, err := record.Read(file)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	if !slices.ContainsFunc(rec.Events, func(e record.Event) bool { return e.Kind == record.ProblemEvent }) {
		err = log.Append(record.ProblemEvent, describe(p, run.Seed))
	}
	err = errors.Join(err,
		log.Append(record.SubmissionEvent, record.Submission{Reason: why, Class: string(Infra)}), log.Close())
	if err != nil {
		return nil, err
	}
	return finish(file)
}

// reopen goes on with a record, without the line that its writer was killed at, or begins one.
func reopen(file string, run record.Run) (*record.Log, error) {
	b, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	whole := bytes.LastIndexByte(b, '\n') + 1
	if whole == 0 {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return record.Create(file, run)
	}
	if whole < len(b) {
		if err := os.Truncate(file, int64(whole)); err != nil {
			return nil, err
		}
	}
	return record.Open(file)
}
