package server

// Reward is what the steps of an episode are worth. The reward of a step is Step, and Invalid on top
// of it if no action could be read from it; the last step adds Solved or Failed. An episode that says
// nothing of the agent adds nothing. With Users, what a step does for the users of the application is on top of that.
type Reward struct {
	Solved  float64 `json:"solved" doc:"for a problem that is solved; 1 by default"`
	Failed  float64 `json:"failed" doc:"for one that is not; 0 by default"`
	Step    float64 `json:"step" doc:"for every step; 0 by default"`
	Invalid float64 `json:"invalid" doc:"for a step with no action in it, or an unknown one; 0 by default"`
	Users   float64 `json:"users" doc:"for how well the application's users are served: users × (discount × after − before) for each step, where that is 0 to 1, and 0 after the last step; 0 by default, 1 for the reward shaped"`
	// Discount is the trainer's own.
	Discount float64 `json:"discount" doc:"by which the trainer discounts a reward for each step that it comes later; only users has use for it; 1 by default"`
}

// DefaultReward makes the return of an episode 1 if it is solved, and 0 if not.
var DefaultReward = Reward{Solved: 1, Discount: 1}

// NewEnv asks for an environment.
type NewEnv struct {
	Problem  string   `json:"problem,omitempty" doc:"id of the problem of every episode"`
	Problems []string `json:"problems,omitempty" doc:"ids to draw the problem of an episode from, instead of one"`
	// Documents are of problems of one's own.
	Documents []string `json:"documents,omitempty" doc:"YAML texts of problems of one's own, to draw from too"`
	EnvSelector

	N        int      `json:"n,omitempty" doc:"how many environments to make; with it, the answer has a list of them, and member i has the seed that is i more than the first's"`
	Name     string   `json:"name,omitempty" doc:"what the records call the agent; gym by default"`
	Seed     uint64   `json:"seed,omitempty" doc:"what problems, load and noise are drawn from; a new one by default"`
	HandOver string   `json:"hand_over,omitempty" doc:"when the agent's turn begins: fault, alert, or so long after the injection, as 90s; fault by default, alert for incidents"`
	Noise    string   `json:"noise,omitempty" enum:"none,calm,busy" doc:"how much else changes in the application, in ways that do no harm; calm by default"`
	Decoys   []string `json:"decoys,omitempty" doc:"what is put in to be taken for the fault, or to mislead: fault, telemetry, instruction; none by default"`
	MaxSteps int      `json:"max_steps,omitempty" doc:"how many steps an episode has; 30 by default"`
	MaxTime  float64  `json:"max_time,omitempty" doc:"how many seconds an episode has; 900 by default"`
	Reward   Reward   `json:"reward,omitzero" short:"shaped" doc:"what steps are worth; shaped is the default with users 1"`
	Keep     int      `json:"keep_records,omitempty" doc:"how many records of episodes are kept, the newest, until a problem takes a new cluster; all by default"`
}

// EnvSelector chooses problems to draw from: those of the documents, or without documents those of GET /problems.
type EnvSelector struct {
	Suite string `json:"suite,omitempty" doc:"problems of a suite, to draw from too"`
	Task  string `json:"task,omitempty" enum:"detection,localization,analysis,mitigation,incident,operation,shift" doc:"only those of a task"`
	App   string `json:"app,omitempty" doc:"only those of an application"`
}

// Env is an environment.
type Env struct {
	ID       string   `json:"id"`
	Problems []string `json:"problems"`
	MaxSteps int      `json:"max_steps"`
	Reward   Reward   `json:"reward"`
	Episodes int      `json:"episodes" doc:"how many have begun"`
}

// OpenedEnv is an environment that was just made.
type OpenedEnv struct {
	Env
	Token string `json:"token" doc:"reaches this environment and nothing else"`
}

// OpenedEnvs are environments that were made together.
type OpenedEnvs struct {
	Envs  []OpenedEnv `json:"envs"`
	Token string      `json:"token" doc:"reaches all of them and nothing else"`
}

// Reset begins an episode.
type Reset struct {
	Seed    *uint64      `json:"seed,omitempty" doc:"begins a new sequence of problems and loads"`
	Options ResetOptions `json:"options,omitzero"`
	name    string       // of the episode, in its state
}

// ResetOptions are what a reset can choose.
type ResetOptions struct {
	Problem string `json:"problem,omitempty" doc:"id of the episode's problem; any will do, but one with another application takes a new cluster"`
}

// First is the beginning of an episode.
type First struct {
	Observation string         `json:"observation" doc:"the whole briefing"`
	Info        map[string]any `json:"info"`
}

// Move is a step of an episode.
type Move struct {
	Action any `json:"action" doc:"text with one call in it, or an object with name and arguments"`
}

// Result is what a step of an episode came to.
type Result struct {
	Observation string         `json:"observation"`
	Reward      float64        `json:"reward"`
	Terminated  bool           `json:"terminated" doc:"the agent submitted, and was graded"`
	Truncated   bool           `json:"truncated" doc:"a limit was met; what there is was graded"`
	Info        map[string]any `json:"info" doc:"at the end of an episode: problem, seed, class, why, results, record, and valid, which is false if the episode says nothing of the agent"`
}

// Snapshot is a moment of an episode to which environments can go back. What it holds stays in the server.
type Snapshot struct {
	ID   string `json:"id"`
	Step int    `json:"step" doc:"how many steps the episode had taken"`
}

// Restore takes an environment to a snapshot.
type Restore struct {
	Snapshot string `json:"snapshot" doc:"id of a snapshot, of this environment or of another one that the token reaches"`
}

// Restored is what came of taking the steps of a snapshot again, in a new episode: the last of them.
type Restored struct {
	Result
	Steps   int         `json:"steps" doc:"how many were taken again: all, unless the episode ended before"`
	Same    int         `json:"same" doc:"how many of them had the observation that they had when the snapshot was taken, but for times"`
	Differs *Difference `json:"differs,omitempty" doc:"the first one that had another"`
}

// Difference is a step whose observation is another when it is taken again.
type Difference struct {
	Step int    `json:"step"`
	Was  string `json:"was" doc:"the first line that differs, as it was; empty if there was none"`
	Now  string `json:"now" doc:"the same, as it is now"`
}

// BatchReset begins an episode in each of several environments, at the same time.
type BatchReset struct {
	Resets []EnvReset `json:"resets"`
}

// EnvReset is the reset of one of them.
type EnvReset struct {
	Env string `json:"env" doc:"id of the environment"`
	Reset
}

// BatchStep takes a step in each of several environments, at the same time.
type BatchStep struct {
	Steps []EnvMove `json:"steps"`
}

// EnvMove is the step of one of them.
type EnvMove struct {
	Env string `json:"env" doc:"id of the environment"`
	Move
}

// BatchFirst is what came of a batch of resets, in their order.
type BatchFirst struct {
	Results []EnvFirst `json:"results"`
}

// EnvFirst is what came of one of them: the beginning of an episode, or an error.
type EnvFirst struct {
	Env   string    `json:"env"`
	First *First    `json:"first,omitempty" doc:"as of a reset; left out if there is an error"`
	Error *EnvError `json:"error,omitempty"`
}

// BatchResult is what came of a batch of steps, in their order.
type BatchResult struct {
	Results []EnvResult `json:"results"`
}

// EnvResult is what came of one of them: a result, or an error.
type EnvResult struct {
	Env    string    `json:"env"`
	Result *Result   `json:"result,omitempty" doc:"as of a step; left out if there is an error"`
	Error  *EnvError `json:"error,omitempty"`
}

// BatchSnapshot takes a snapshot in each of several environments, at the same time.
type BatchSnapshot struct {
	Snapshots []EnvRef `json:"snapshots"`
}

// EnvRef names one of them.
type EnvRef struct {
	Env string `json:"env" doc:"id of the environment"`
}

// BatchRestore takes each of several environments to a snapshot, at the same time.
type BatchRestore struct {
	Restores []EnvRestore `json:"restores"`
}

// EnvRestore is the restore of one of them.
type EnvRestore struct {
	Env string `json:"env" doc:"id of the environment"`
	Restore
}

// BatchSnapshots is what came of a batch of snapshots, in their order.
type BatchSnapshots struct {
	Results []EnvSnapshot `json:"results"`
}

// EnvSnapshot is what came of one of them: a snapshot, or an error.
type EnvSnapshot struct {
	Env      string    `json:"env"`
	Snapshot *Snapshot `json:"snapshot,omitempty" doc:"left out if there is an error"`
	Error    *EnvError `json:"error,omitempty"`
}

// BatchRestored is what came of a batch of restores, in their order.
type BatchRestored struct {
	Results []EnvRestored `json:"results"`
}

// EnvRestored is what came of one of them: where it is now, or an error.
type EnvRestored struct {
	Env      string    `json:"env"`
	Restored *Restored `json:"restored,omitempty" doc:"as of a restore; left out if there is an error"`
	Error    *EnvError `json:"error,omitempty"`
}

// EnvError is what is wrong with one member of a batch. It does not concern the others.
type EnvError struct {
	Status int    `json:"status" doc:"as the answer to a request for this environment alone would have"`
	Detail string `json:"detail"`
}
