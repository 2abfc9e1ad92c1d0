package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/aiopslab/aiopslab/kit"
)

// groupsTool is kafka-consumer-groups.sh with what its command line says.
type groupsTool struct {
	*tool
	list, describe, all, members, state, remove, reset, execute, earliest, latest *bool

	groups []string
	topic  *string
	offset *int64
}

// Groups is kafka-consumer-groups.sh.
func Groups(ctx context.Context, env *kit.Env) error {
	t := &groupsTool{tool: newTool(env)}
	f := t.flags
	t.list = f.Bool("list", false, "list the groups")
	t.describe = f.Bool("describe", false, "show how far groups are")
	t.remove = f.Bool("delete", false, "delete groups")
	t.reset = f.Bool("reset-offsets", false, "have a group without members go on elsewhere")
	groups := f.StringArray("group", nil, "a `group`")
	t.all = f.Bool("all-groups", false, "all groups")
	t.members = f.Bool("members", false, "show the members instead")
	t.state = f.Bool("state", false, "show the state instead")
	t.topic = f.String("topic", "", "the `topic` whose offsets are reset")
	f.Bool("all-topics", false, "reset the offsets of all topics, which is the default")
	t.earliest = f.Bool("to-earliest", false, "reset to the oldest message")
	t.latest = f.Bool("to-latest", false, "reset to the end")
	t.offset = f.Int64("to-offset", -1, "reset to an `offset`")
	t.execute = f.Bool("execute", false, "do reset, and do not only show it")
	f.Bool("dry-run", false, "show what would be reset, which is the default")
	if err := t.parse(); err != nil {
		return err
	}
	t.groups = *groups
	actions := 0
	for _, a := range []*bool{t.list, t.describe, t.remove, t.reset} {
		if *a {
			actions++
		}
	}
	if actions != 1 {
		return t.misused("Command must include exactly one action: --list, --describe, --delete or --reset-offsets")
	}
	if !*t.list && !*t.all && len(t.groups) == 0 {
		return t.misused("Option needs one of: --group, --all-groups")
	}
	return t.administer(ctx, "Error: Executing consumer group command failed", t.run)
}

func (t *groupsTool) run(ctx context.Context, c *kadm.Client) error {
	listed, err := c.ListGroups(ctx)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(listed))
	if *t.list {
		for _, name := range names {
			fmt.Fprintln(t.env.Stdout, name)
		}
		return nil
	}
	if !*t.all {
		for _, g := range t.groups {
			if !slices.Contains(names, g) {
				return saidf("Consumer group '%s' does not exist.", g)
			}
		}
		names = t.groups
	}
	if len(names) == 0 {
		return nil
	}
	if *t.remove {
		return t.delete(ctx, c, names)
	}
	lags, err := c.Lag(ctx, names...)
	if err != nil {
		return err
	}
	for _, l := range lags.Sorted() {
		if err := l.Error(); err != nil {
			return err
		}
		switch {
		case *t.reset:
			err = t.resetGroup(ctx, c, l)
		case *t.members:
			err = t.showMembers(l)
		case *t.state:
			err = t.showState(l)
		default:
			err = t.showLag(l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// table prints rows below each other, as wide as they need.
func (t *groupsTool) table(rows [][]string) error {
	w := tabwriter.NewWriter(t.env.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w)
	for _, r := range rows {
		for _, cell := range r {
			fmt.Fprintf(w, "%s\t", cell)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

func (t *groupsTool) showLag(l kadm.DescribedGroupLag) error {
	if len(l.Members) == 0 {
		fmt.Fprintf(t.env.Stderr, "\nConsumer group '%s' has no active members.\n", l.Group)
	}
	rows := [][]string{{
		"GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID",
	}}
	for _, p := range l.Lag.Sorted() {
		at, lag, id, host, client := "-", "-", "-", "-", "-"
		if p.Commit.At >= 0 {
			at, lag = strconv.FormatInt(p.Commit.At, 10), strconv.FormatInt(p.Lag, 10)
		}
		if m := p.Member; m != nil {
			id, host, client = m.MemberID, m.ClientHost, m.ClientID
		}
		rows = append(rows, []string{
			l.Group, p.Topic, strconv.Itoa(int(p.Partition)), at, strconv.FormatInt(p.End.Offset, 10), lag, id, host,
			client,
		})
	}
	return t.table(rows)
}

func (t *groupsTool) showMembers(l kadm.DescribedGroupLag) error {
	rows := [][]string{{"GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"}}
	for _, m := range l.Members {
		n := 0
		if a, ok := m.Assigned.AsConsumer(); ok {
			for _, topic := range a.Topics {
				n += len(topic.Partitions)
			}
		}
		rows = append(rows, []string{l.Group, m.MemberID, m.ClientHost, m.ClientID, strconv.Itoa(n)})
	}
	return t.table(rows)
}

func (t *groupsTool) showState(l kadm.DescribedGroupLag) error {
	return t.table([][]string{
		{"GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"},
		{
			l.Group, fmt.Sprintf("%s:%d (%d)", l.Coordinator.Host, l.Coordinator.Port, l.Coordinator.NodeID),
			l.Protocol, l.State, strconv.Itoa(len(l.Members)),
		},
	})
}

func (t *groupsTool) delete(ctx context.Context, c *kadm.Client, names []string) error {
	resp, err := c.DeleteGroups(ctx, names...)
	if err != nil {
		return err
	}
	for _, r := range resp.Sorted() {
		if errors.Is(r.Err, kerr.NonEmptyGroup) {
			return saidf("Group '%s' could not be deleted: the group is not empty, stop its consumers first.", r.Group)
		}
		if r.Err != nil {
			return r.Err
		}
		fmt.Fprintf(t.env.Stdout, "Deletion of requested consumer groups ('%s') was successful.\n", r.Group)
	}
	return nil
}

// resetGroup has a group go on elsewhere.
func (t *groupsTool) resetGroup(ctx context.Context, c *kadm.Client, l kadm.DescribedGroupLag) error {
	if len(l.Members) > 0 {
		return saidf("Assignments can only be reset if the group '%s' is inactive, but the current state is %s.",
			l.Group, l.State)
	}
	if !*t.earliest && !*t.latest && *t.offset < 0 {
		return saidf("Say where to reset to: --to-earliest, --to-latest or --to-offset")
	}
	offsets := kadm.Offsets{}
	rows := [][]string{{"GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"}}
	for _, p := range l.Lag.Sorted() {
		if *t.topic != "" && p.Topic != *t.topic {
			continue
		}
		at := p.Start.Offset
		switch {
		case *t.latest:
			at = p.End.Offset
		case *t.offset >= 0:
			at = min(max(*t.offset, p.Start.Offset), p.End.Offset)
		}
		offsets.AddOffset(p.Topic, p.Partition, at, -1)
		rows = append(rows, []string{l.Group, p.Topic, strconv.Itoa(int(p.Partition)), strconv.FormatInt(at, 10)})
	}
	slices.SortStableFunc(rows[1:], func(a, b []string) int { return cmp.Compare(a[1], b[1]) })
	if *t.execute && len(offsets) > 0 {
		if err := c.CommitAllOffsets(ctx, l.Group, offsets); err != nil {
			return err
		}
	}
	return t.table(rows)
}
