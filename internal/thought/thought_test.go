package thought

import (
	"strings"
	"testing"
)

const (
	weighed = "```\nexec_shell(\"kubectl delete ns --all\")\n```"
	meant   = "```\nsubmit(\"Yes\")\n```"
)

func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		name, text, answer, thoughts string
		cut                          bool
	}{
		{name: "nothing", text: "", answer: ""},
		{name: "no thought", text: "  " + meant + "\n", answer: "  " + meant + "\n"},
		{name: "a thought", text: "<think>" + weighed + "</think>\n" + meant, answer: meant, thoughts: weighed},
		{name: "nothing but a thought", text: "<think>" + weighed + "</think>", answer: "", thoughts: weighed},
		{name: "an empty thought", text: "<think>\n\n</think>\n" + meant, answer: meant},
		{name: "an empty tag", text: "<think/>\n" + meant, answer: meant},
		{name: "upper case and attributes", text: "<THINK budget=\"3\">a</ THINK >" + meant, answer: meant, thoughts: "a"},
		{name: "other names", text: "<thinking>a</thinking><reasoning>b</reasoning><reflection>c</reflection><scratchpad>d</scratchpad>" + meant, answer: meant, thoughts: "a\n\nb\n\nc\n\nd"},
		{name: "a prefix", text: "<seed:think>a</seed:think>" + meant, answer: meant, thoughts: "a"},
		{name: "brackets", text: "[THINK]" + weighed + "[/THINK]" + meant, answer: meant, thoughts: weighed},
		{name: "triangles", text: "◁think▷" + weighed + "◁/think▷" + meant, answer: meant, thoughts: weighed},
		{name: "START_THINKING", text: "<|START_THINKING|>" + weighed + "<|END_THINKING|>" + meant, answer: meant, thoughts: weighed},
		{name: "begin_of_thought", text: "<|begin_of_thought|>" + weighed + "<|end_of_thought|>" + meant, answer: meant, thoughts: weighed},
		{name: "channel>thought", text: "<|channel>thought\n" + weighed + "<channel|>" + meant, answer: meant, thoughts: weighed},
		{name: "tags that do not match", text: "<think>" + weighed + "</thinking>" + meant, answer: meant, thoughts: weighed},

		{name: "no end", text: "<think>" + weighed, thoughts: weighed},
		{name: "no end, cut", text: "I see.\n<think>" + weighed, answer: "I see.", thoughts: weighed, cut: true},
		{name: "no beginning", text: weighed + "\n</think>\n" + meant, answer: meant, thoughts: weighed},
		{name: "no beginning and no answer", text: weighed + "\n</think>", thoughts: weighed},
		{name: "no beginning, a block left open", text: "```\nexec_shell(\"x\")\n</think>\n" + meant, answer: meant, thoughts: "```\nexec_shell(\"x\")"},
		{name: "an end too many", text: "<think>a</think>" + meant + "</think>", answer: meant, thoughts: "a"},
		{name: "an end in a string of a thought", text: "<think>```\nexec_shell(\"echo </think>\")\n```\n</think>" + meant, answer: meant, thoughts: "```\nexec_shell(\"echo\n\n\")\n```"},

		{name: "nested", text: "<think>a<think>" + weighed + "</think>" + weighed + "</think>" + meant, answer: meant, thoughts: "a<think>" + weighed + "</think>" + weighed},
		{name: "nested, of two kinds", text: "<thinking>a<reflection>b</reflection>" + weighed + "</thinking>" + meant, answer: meant, thoughts: "a<reflection>b</reflection>" + weighed},
		{name: "nested, cut", text: "<think>a<think>b</think>" + weighed, thoughts: "a<think>b</think>" + weighed, cut: true},
		{name: "a thought that speaks of a tag", text: "<think>no <think> tag needed</think>" + meant, answer: meant, thoughts: "no <think> tag needed"},
		{name: "repeated", text: "<think>a</think>So.<think>" + weighed + "</think>" + meant, answer: "So.\n" + meant, thoughts: "a\n\n" + weighed},

		{name: "a tag in a block", text: "```\nexec_shell(\"\"\"cat > f <<E\n<think>\nE\"\"\")\n```", answer: "```\nexec_shell(\"\"\"cat > f <<E\n<think>\nE\"\"\")\n```"},
		{name: "an end in a block", text: "```\nexec_shell(\"grep '</think>' log\")\n```", answer: "```\nexec_shell(\"grep '</think>' log\")\n```"},
		{name: "both in a block, after a thought", text: "<think>don't</think>\n```\nexec_shell(\"sed 's,<think>.*</think>,,' f\")\n```", answer: "```\nexec_shell(\"sed 's,<think>.*</think>,,' f\")\n```", thoughts: "don't"},
		{name: "a tag in quotes", text: `exec_shell("echo \"<think>\" it's")`, answer: `exec_shell("echo \"<think>\" it's")`},
		{name: "a tag in single quotes", text: `exec_shell('echo </think>')`, answer: `exec_shell('echo </think>')`},
		{name: "a tag in backticks", text: "The log has `<think>` in it.\n" + meant, answer: "The log has `<think>` in it.\n" + meant},
		{name: "apostrophes", text: "It's odd</think>isn't it", answer: "isn't it", thoughts: "It's odd"},
		{name: "another tag", text: "<answer>" + meant + "</answer><thinker>", answer: "<answer>" + meant + "</answer><thinker>"},

		{name: "channels", text: "<|channel|>analysis<|message|>" + weighed + "<|end|><|start|>assistant<|channel|>final<|message|>" + meant + "<|return|>", answer: meant, thoughts: weighed},
		{name: "channels, cut", text: "<|channel|>analysis<|message|>" + weighed, thoughts: weighed, cut: true},
		{name: "a channel that the prompt opened", text: weighed + "<|end|><|start|>assistant<|channel|>final<|message|>" + meant, answer: meant, thoughts: weighed},
		{name: "two thoughts in channels", text: "<|channel|>analysis<|message|>a \"<|end|><|start|>assistant<|channel|>analysis<|message|>b<|end|><|start|>assistant<|channel|>final<|message|>" + meant, answer: meant, thoughts: "a \"\n\nb"},
		{
			name: "a call in a channel", text: "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary to=functions.exec_shell <|constrain|>json<|message|>{\"command\":\"ls\"}<|call|>",
			answer: `<tool_call>{"name": "exec_shell", "arguments": {"command":"ls"}}</tool_call>`, thoughts: "a",
		},
		{
			name: "a call whose header names it first", text: "<|start|>assistant to=functions.submit<|channel|>commentary<|message|>Yes<|call|>",
			answer: `<tool_call>{"name": "submit", "arguments": "Yes"}</tool_call>`,
		},
		{name: "channels without markers", text: "analysisWe could " + weighed + "assistantfinal" + meant, answer: meant, thoughts: "We could " + weighed},
		{
			name: "a call without markers", text: "analysisLook.assistantcommentary to=functions.exec_shell json{\"command\":\"ls\"}",
			answer: `<tool_call>{"name": "exec_shell", "arguments": {"command":"ls"}}</tool_call>`, thoughts: "Look.",
		},
		{name: "a marker in a string", text: "```\nexec_shell(\"grep '<|channel|>' f\")\n```", answer: "```\nexec_shell(\"grep '<|channel|>' f\")\n```"},
		{name: "a word of analysis", text: "analysis: " + meant, answer: "analysis: " + meant},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer, thoughts := Split(tt.text, tt.cut)
			if answer != tt.answer || thoughts != tt.thoughts {
				t.Errorf("%q\nsays %q, want %q\nthinks %q, want %q", tt.text, answer, tt.answer, thoughts, tt.thoughts)
			}
		})
	}
}

// What is hard to read takes no longer than what is easy: it comes from a model, which may say anything.
// If a case were quadratic, the test would not end.
func TestLong(t *testing.T) {
	const size = 1 << 18
	for _, part := range []string{
		"<think>", "</think>", "<think><think></think>", "<think><reason></reason>", "```\n</think>\n", "```\n<think>\n",
		" 'a", "\"", "`", "<|channel|>analysis<|message|>", "<", "\\",
	} {
		Split(strings.Repeat(part, size/len(part)), false)
	}
}

// FuzzSplit holds that nothing is left to split in an answer.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{
		"<think>a</think>b", "a</think>b", "<think>a", "```\n<think>\n```", "<think>a<think>b</think>c", "\"<think>\"</think>'x'",
		"<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b", "analysis x assistantfinal y",
		"<th<think>x</think>ink>y", "[THINK]a[/THINK]◁think▷",
	} {
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, text string, cut bool) {
		answer, thoughts := Split(text, cut)
		if thoughts == "" && !strings.ContainsAny(text, "<[◁") && !strings.Contains(text, "assistant") && answer != text {
			t.Errorf("%q became %q", text, answer)
		}
		if again, more := Split(answer, cut); more != "" && len(text) < 200 { // A long one may need many rounds.
			t.Errorf("%q leaves %q, in which there is %q and the thought %q", text, answer, again, more)
		}
	})
}
