package record

import (
	"encoding/json"
	"time"
)

// The kinds of events of a run, in the order in which they first occur. What tells of the problem, and
// the baseline with when it was taken, is written when the agent is done.
const (
	PhaseEvent      = "phase"      // Phase
	IsolationEvent  = "isolation"  // Isolation, in an environment that is kept
	LoadEvent       = "load"       // Load, on a cluster that is somebody's
	BaselineEvent   = "baseline"   // the healthy system
	BriefingEvent   = "briefing"   // Briefing
	PromptEvent     = "prompt"     // Prompt, once for each that an agent uses
	ModelEvent      = "model"      // what an agent asked its model, and the reply: llm.Exchange
	RetryEvent      = "retry"      // an attempt at asking the model that failed, with another to come: llm.Attempt
	CutEvent        = "cut"        // Cut
	GroupEvent      = "group"      // Group, of an agent that is several
	MessageEvent    = "message"    // Message, between the members of a group
	TurnEvent       = "turn"       // Turn, of a member of a group; if it is a call of an action, the action follows
	ActionEvent     = "action"     // Action, when it begins; a step follows when it is done
	StepEvent       = "step"       // Step
	SnapshotEvent   = "snapshot"   // Snapshot, of an episode in training
	RestoreEvent    = "restore"    // Restore, of an episode in training, before the steps that are taken again
	AnswerEvent     = "answer"     // Answer, to a question of an incident, before the step that gave it
	ApprovalEvent   = "approval"   // a change that somebody is asked about: session.Approval
	WriteEvent      = "write"      // what the agent changed through the API
	ProposalEvent   = "proposal"   // what the agent would have changed, in a shadow run
	LogEvent        = "log"        // Output, that an external agent logged
	StderrEvent     = "stderr"     // Output, the end of what an external agent wrote to standard error
	DoingEvent      = "doing"      // what the agent did that may disturb the system, and how the machine fared
	SubmissionEvent = "submission" // Submission
	ProblemEvent    = "problem"    // the problem, its answer and the seed, as of when it ran
	PastEvent       = "past"       // Past
	NoiseEvent      = "noise"      // Noise, until the agent's turn, and in it
	DecoyEvent      = "decoy"      // Decoy, once for each
	FaultEvent      = "fault"      // Fault, once for each that showed
	FoundEvent      = "found"      // services with objectives at the beginning of the turn: []grade.Operated
	HandOverEvent   = "hand-over"  // HandOver
	ShiftEvent      = "shift"      // Shift, when it begins
	IncidentEvent   = "incident"   // Incident of a shift, whenever something becomes of it
	PageEvent       = "page"       // Page, of a shift
	ShiftEndEvent   = "shift-end"  // ShiftEnd
	SeverityEvent   = "severity"   // how bad the system was from the injection on, once a second: grade.Course
	DeathEvent      = "death"      // Death, of the environment
	// what came of an action of transactions: guard.Transaction; among the writes
	TransactionEvent = "transaction"
	// the run was interrupted, after or before the submission: the system is not watched for long
	InterruptEvent = "interrupt"
	HoldEvent      = "hold"      // how long a mitigated system must be well: grade.Holding
	LookEvent      = "look"      // the system after the agent was done
	BlindEvent     = "blind"     // Blind
	JudgementEvent = "judgement" // of a model, on the agent's reasoning
	VerdictEvent   = "verdict"
)

// Phase says what a run does from now on.
type Phase struct {
	Name string `json:"name"`
}

// Isolation is what keeps a run apart from others. A record without it is of a run in an environment of its own, too.
type Isolation struct {
	Mode string `json:"mode"` // IsolatedFresh or IsolatedReset
	// Before is how many runs there were in the environment before.
	Before int `json:"before"`
	// Compared says that the cluster was compared with what it was reset to, and nothing differed.
	Compared bool `json:"compared,omitempty"`
	// Why says why that is not so, of an environment that was reset nevertheless.
	Why string `json:"why,omitempty"`
}

// How runs are kept apart: in an environment that nobody has used before, or in one that was reset.
const (
	IsolatedFresh = "fresh"
	IsolatedReset = "reset"
)

// Load is where the load of a run comes from.
type Load struct {
	From      string `json:"from"`                // FromHere or FromCluster
	Namespace string `json:"namespace,omitempty"` // of the pod that sends it
	Pod       string `json:"pod,omitempty"`
}

// Where a load comes from: from the lab's own process, through the API server's port-forward, or from a pod.
const (
	FromHere    = "here"
	FromCluster = "cluster"
)

// Past is what past a run's world had.
type Past struct {
	// Made says how it was made.
	Made string `json:"made"` // PastWritten, PastLived or PastNone
	// Days is how old the cluster is made to look, drawn from the seed.
	Days int `json:"days,omitempty"`
	// Seconds is for how long the application had been used, if its past was lived.
	Seconds float64 `json:"seconds,omitempty"`
}

// A past is written, by a cloud that can. The API of a cluster back-dates nothing: there the application is used for a
// while before anything goes wrong, and so has lived, or has no past but its start.
const (
	PastWritten = "written"
	PastLived   = "lived"
	PastNone    = "none"
)

// Fault is a fault that was injected.
type Fault struct {
	Kind    string    `json:"kind"`
	Target  string    `json:"target"`
	Symptom string    `json:"symptom"`
	Time    time.Time `json:"time"` // when it showed
	// Names are what components go by in this run alone, by their own name.
	Names map[string][]string `json:"names,omitempty"`
}

// HandOver is how the agent's turn came to begin.
type HandOver struct {
	When  string   `json:"when,omitempty"` // fault, alert or a duration; empty if nobody said
	After float64  `json:"after"`          // seconds, since the injection began
	Page  []string `json:"page,omitempty"` // what the pager said
}

// Shift is what was to come in a shift.
type Shift struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Day     bool      `json:"day,omitempty"` // a whole day of users passed
	Planned []Planned `json:"planned"`
	// FalseAlarms are when somebody was to be called though nothing was wrong.
	FalseAlarms []time.Time `json:"false_alarms,omitempty"`
}

// Planned is an incident that was to come.
type Planned struct {
	Number     int       `json:"number"`
	Problem    string    `json:"problem"` // the id of a mitigation
	Components []string  `json:"components"`
	At         time.Time `json:"at"`
}

// Incident is what became of an incident of a shift.
type Incident struct {
	Number int `json:"number"`
	// Became is one of the words below.
	Became string    `json:"became"`
	Time   time.Time `json:"time"`
	What   string    `json:"what,omitempty"` // in words: how it shows, or why it did not come
}

// What becomes of an incident: it is seen, it is mended, it is back, it could not be brought about.
const (
	IncidentShown  = "shown"
	IncidentMended = "mended"
	IncidentBack   = "back"
	IncidentFailed = "failed"
)

// Page is a call by the pager of a shift.
type Page struct {
	Number int       `json:"number"`
	Time   time.Time `json:"time"`
	Lines  []string  `json:"lines"` // what it says
	// More says that it adds to a page that was not answered yet.
	More bool `json:"more,omitempty"`
}

// ShiftEnd is when nobody looked at a shift's system any more, and whether all that was to come had come and was
// mended.
type ShiftEnd struct {
	Time time.Time `json:"time"`
	Over bool      `json:"over"`
	// Busy are the moments at which the machine was too busy to serve users, by the looks, to the second.
	Busy []time.Time `json:"busy,omitempty"`
}

// PageAnswer is what an agent on call answered to pages. It is in the [Answer] to the question "page".
type PageAnswer struct {
	Pages    []int     `json:"pages"` // those that it had been told of and had not answered
	Services []string  `json:"services,omitempty"`
	Time     time.Time `json:"time"` // when it was given; the agent waits for the next page then
}

// Noise is what was changed that does not matter.
type Noise struct {
	Level   string   `json:"level"`
	Changes []Change `json:"changes"`
}

// Change is a change that does not matter.
type Change struct {
	Time time.Time `json:"time"`
	// What is "release", "scale up", "scale down", "cordon", "uncordon", "certificate", "slow query" or "load spike".
	What    string `json:"what"`
	Service string `json:"service,omitempty"` // of a certificate, the Secret
	Node    string `json:"node,omitempty"`
}

// Decoy is something in the application that is not the fault, and may be taken for it.
type Decoy struct {
	Kind    string `json:"kind"` // "fault", "telemetry" or "instruction"
	What    string `json:"what"` // of an instruction, its text
	Service string `json:"service,omitempty"`
	// Token is in the command that an instruction asks for, and Answers has the answers, by question.
	Token   string         `json:"token,omitempty"`
	Answers map[string]any `json:"answers,omitempty"`
}

// Briefing is what the agent was told.
type Briefing struct {
	Description  string            `json:"description"`
	Instructions string            `json:"instructions"`
	Actions      map[string]string `json:"actions"`
	Confinement  string            `json:"confinement,omitempty"` // what holds the agent's shell in
	// Program says how the agent's program on this machine is confined, if it is one, and Unconfined why it is
	// not, or not wholly.
	Program    string `json:"program,omitempty"`
	Unconfined string `json:"unconfined,omitempty"`
	Policy     string `json:"policy,omitempty"` // the name of the one that is in force
}

// Blind says why the system could not be looked at any more.
type Blind struct {
	Error string `json:"error"`
}

// Prompt is a prompt that an agent's conversations are made from.
type Prompt struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"` // of the file
}

// Cut is what an agent left out of a conversation to keep it within its model's window.
type Cut struct {
	Observations []int `json:"observations,omitempty"` // numbers of the steps whose observations a line stands for
	Turns        []int `json:"turns,omitempty"`        // numbers of the steps that are left out whole
	// numbers of the steps of whose observations only the ends are left
	Shortened []int `json:"shortened,omitempty"`
	Tokens    int   `json:"tokens"` // of what is sent, about
	Limit     int   `json:"limit"`  // what it is kept below
}

// Group is who the members of an agent are that is several.
type Group struct {
	Mode    string   `json:"mode"`    // "manager", "peers" or "single"
	Planner string   `json:"planner"` // who decides: "rules", "model", or the name of an agent
	Members []Member `json:"members"`
}

// Member is one of a group.
type Member struct {
	Name  string   `json:"name"`
	Role  string   `json:"role"`            // one of the roles below
	Calls []string `json:"calls,omitempty"` // of a maintainer, the services that its service calls
	At    string   `json:"at,omitempty"`    // of one that is an agent elsewhere, its address
}

// The roles of members: who leads the others, who maintains a service, and who speaks for equals.
const (
	ManagerRole    = "manager"
	MaintainerRole = "maintainer"
	SpeakerRole    = "speaker"
)

// Message is what one member of a group said to another. The group says who it is from, not the text.
type Message struct {
	Number int    `json:"number"` // from 1
	From   string `json:"from"`
	To     string `json:"to"`
	Kind   string `json:"kind"`            // one of the kinds below
	Round  int    `json:"round,omitempty"` // of the manager's tasks and their answers, from 1
	Re     int    `json:"re,omitempty"`    // the number of the message that it answers
	Text   string `json:"text"`
}

// The kinds of messages: what the manager wants done, the answer to that, trouble that nobody had asked about, a
// member that is to look whether all is well, and what equals tell each other.
const (
	TaskMessage      = "task"
	ResponseMessage  = "response"
	IssueMessage     = "issue"
	HeartbeatMessage = "heartbeat"
	NoteMessage      = "note"
)

// Turn is one decision of a member of a group.
type Turn struct {
	Who   string `json:"who"`
	Round int    `json:"round,omitempty"`
	// Does is an action, or what a member does beside those: "assign_tasks", "report_result", "send_message".
	Does string `json:"does"`
}

// Action is one that the agent has asked for and that is under way from now on.
type Action struct {
	Number   int    `json:"number"` // of its step
	Response string `json:"response"`
	Action   string `json:"action,omitempty"` // empty if none could be read
}

// Death is the end of an environment before its run was over.
type Death struct {
	Why   string `json:"why"`
	Class string `json:"class"` // whose fault it is
}

// Step is one response of the agent and what it led to.
type Step struct {
	Number      int     `json:"number"` // from 1
	Response    string  `json:"response"`
	Action      string  `json:"action,omitempty"` // empty if none could be read
	Observation string  `json:"observation"`
	Failed      bool    `json:"failed,omitempty"` // the action could not be taken, or was broken off
	Thought     float64 `json:"thought_seconds"`  // that the agent took
	Took        float64 `json:"took_seconds"`     // that the action took
}

// Snapshot is a moment of an episode to which environments may go back.
type Snapshot struct {
	Steps int `json:"steps"` // how many there were by then
}

// Restore says that an episode began with the steps that another one had taken until a snapshot; with none, that it
// began as the other one did, by the same problem and seed.
type Restore struct {
	From  string `json:"from"` // the id of that one
	Steps int    `json:"steps"`
}

// Answer is what the agent answered to a question of an incident.
type Answer struct {
	Question string          `json:"question"`
	Answer   json.RawMessage `json:"answer,omitempty"`
	Step     int             `json:"step"`           // number of the step that gave it
	Next     string          `json:"next,omitempty"` // the question that comes after it; empty after the last
}

// Output is text that an agent wrote beside its responses.
type Output struct {
	Text    string `json:"text"`
	Dropped int64  `json:"dropped,omitempty"` // bytes that came before, and are not kept
}

// Submission is the agent's answer, of an incident the last one, or why there is none.
type Submission struct {
	Submitted bool            `json:"submitted"`
	Answer    json.RawMessage `json:"answer,omitempty"`
	Reason    string          `json:"reason,omitempty"` // why the run ended without one
	Class     string          `json:"class,omitempty"`  // whose fault that is
}
