package page

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/aiopslab/aiopslab/problem/problemtest"
	"github.com/aiopslab/aiopslab/record"
)

// patience of tests, on a machine that others use.
const browserPatience = 90 * time.Second

// maxClicks is how many clicks lead from the first page to what a user comes for.
const maxClicks = 4

// browser is a real one, at the first page.
type browser struct {
	*testing.T
	ctx    context.Context
	site   *Site
	url    string
	dir    string
	clicks int

	sessions *fakeSessions
}

// newBrowser starts Chromium in front of a gallery. Where there is none, the test is skipped.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	return browserAt(t, func(dir string) Options { return Options{Dir: dir, Library: problemtest.Library(t)} })
}

// browserAt starts one in front of a site.
func browserAt(t *testing.T, o func(dir string) Options) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("there is no chromium here: pages are not tried in a browser")
	}
	dir := filepath.Join(t.TempDir(), "results")
	gallery(t, dir)
	site := New(o(dir))
	sessions := &fakeSessions{t: t, dir: dir, only: "revoke_auth_mongodb-detection-1"}
	site.Host(sessions)
	web := httptest.NewServer(site)
	t.Cleanup(func() {
		site.Close()
		web.Close()
	})
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.WindowSize(1400, 900))
	all, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(all)
	t.Cleanup(cancel)
	b := &browser{T: t, ctx: ctx, site: site, url: web.URL, dir: dir, sessions: sessions}
	b.open(site.Link())
	return b
}

// open goes to a page.
func (b *browser) open(path string) {
	b.Helper()
	if err := chromedp.Do(b.ctx, chromedp.Navigate(b.url+path)); err != nil {
		b.Fatal(err)
	}
}

// home begins a task: at the first page, with no click yet.
func (b *browser) home() {
	b.Helper()
	b.open(Prefix)
	b.see("h1", "Runs")
	b.clicks = 0
}

// eval runs a script in the page.
func eval[T any](b *browser, script string) T {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script))
	if err != nil {
		b.Fatalf("%s: %v", script, err)
	}
	return v
}

// until waits for something to hold in the page.
func (b *browser) until(what, condition string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, browserPatience)
	defer cancel()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+condition+")"))
		if err == nil && ok {
			return
		}
		select {
		case <-ctx.Done():
			text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText.slice(0, 3000)"))
			b.Fatalf("waited for %s in vain; the page has:\n%s", what, text)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func js(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// see waits for a visible element that has a text.
func (b *browser) see(selector, text string) {
	b.Helper()
	b.until(fmt.Sprintf("%q in %s", text, selector), fmt.Sprintf(
		`document.readyState === 'complete' && [...document.querySelectorAll(%s)].some((e) => e.checkVisibility() && e.textContent.includes(%s))`,
		js(selector), js(text)))
}

// click clicks the first visible element that has a text, as soon as there is one.
func (b *browser) click(selector, text string) {
	b.Helper()
	if b.clicks++; b.clicks > maxClicks {
		b.Errorf("it takes more than %d clicks", maxClicks)
	}
	b.until(fmt.Sprintf("%q in %s", text, selector), fmt.Sprintf(`(() => {
		const e = document.readyState === 'complete' && [...document.querySelectorAll(%s)].find((e) => e.checkVisibility() && e.textContent.includes(%s));
		return e && (e.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, view: window })), true);
	})()`, js(selector), js(text)))
}

// choose chooses from a list.
func (b *browser) choose(selector, value string) {
	b.Helper()
	b.until(selector, fmt.Sprintf(`document.readyState === 'complete' && document.querySelector(%s)`, js(selector)))
	if b.clicks++; b.clicks > maxClicks {
		b.Errorf("it takes more than %d clicks", maxClicks)
	}
	eval[bool](b, fmt.Sprintf(`(() => {
		const e = document.querySelector(%s);
		e.value = %s;
		e.dispatchEvent(new Event('change', { bubbles: true }));
		return e.value === %[2]s;
	})()`, js(selector), js(value)))
}

func (b *browser) press(keys string) {
	b.Helper()
	if err := chromedp.Do(b.ctx, chromedp.KeyEvent(keys)); err != nil {
		b.Fatal(err)
	}
}

// What people come for, each from the first page in a few clicks.
func TestBrowser(t *testing.T) {
	b := newBrowser(t)
	for _, task := range []struct {
		name string
		do   func(*browser)
	}{
		{"find the failed runs of an agent", func(b *browser) {
			b.choose("#f-agent", "flash")
			b.until("the address", `location.search.includes('agent=flash')`)
			b.choose("#f-verdict", "failed")
			b.until("the address", `location.search.includes('verdict=failed')`)
			b.see(".runs .a", "flash")
			if other := eval[int](b, `document.querySelectorAll('.runs .chip:not(.bad)').length`); other != 0 {
				b.Errorf("%d others", other)
			}
		}},
		{"see when users began to suffer", func(b *browser) {
			b.open(Prefix + "?sort=-begun")
			b.click("a.row", problemID)
			b.see("h1", problemID)
			b.see("#axis text", "revoke_auth mongodb-geo")
			b.click("#axis summary", "in words")
			b.see("#axis tr", "the fault revoke_auth in mongodb-geo shows")
		}},
		{"see which write mended it", func(b *browser) {
			b.openRun(mendedRun)
			b.click("#verdict a", "changed deployments/mongodb-geo")
			b.see("#moment .diff .add", "mongo-geo-script")
			b.until("the step to be marked", `document.querySelector('#step-4.now')`)
		}},
		{"see why a verdict is what it is", func(b *browser) {
			b.openRun(failedRun)
			b.click("summary", "Why the verdict is what it is")
			b.see("details[open] dd", "false")
		}},
		{"see what was red at a moment, without a new page", func(b *browser) {
			b.openRun(failedRun)
			eval[bool](b, `window.same = true`)
			b.click("#axis a", "1:02")
			b.see("#moment .graph .node.red + text", "! mongodb-geo")
			b.see("#moment dd", "of requests succeed")
			if !eval[bool](b, `window.same === true && location.search.includes('at=')`) {
				b.Error("the page was loaded anew, or the address does not tell the moment")
			}
		}},
		{"compare two agents", func(b *browser) {
			b.click("nav a", "Compare")
			b.choose("#s-a", "agent:react (small)")
			b.choose("#s-b", "agent:react (large)")
			b.click("button", "Compare")
			b.see(".verdict-words", "react (large) solves")
		}},
		{"compare two runs", func(b *browser) {
			b.until("the table", `document.querySelectorAll('.runs input').length > 2`)
			b.clicks += 2
			eval[bool](b, fmt.Sprintf(`(() => { for (const id of [%q, %q]) document.querySelector('input[value="' + id + '"]').click(); return true; })()`, mendedRun, failedRun))
			b.click("button", "Compare the two")
			b.see(".verdict-words", "They part at step 4.")
		}},
		{"see who told whom what, in a group of agents", func(b *browser) {
			b.openRun(groupRun)
			b.see("#talk h2", "manager, 5 members, decided by rules")
			b.see("#step-2", "by mongodb-geo")
			b.click("#talk summary", "in words")
			b.see("#talk li", "Give the user admin its roles back.")
			eval[bool](b, `window.same = true`)
			b.click("#talk li a", "27 s")
			b.see("#moment h2", "At 27 s")
			if !eval[bool](b, `window.same === true`) {
				b.Error("the page was loaded anew")
			}
		}},
		{"see what harm a run did", func(b *browser) {
			b.openRun(failedRun)
			b.see("#verdict .chip", "did harm")
			b.click("summary", "What it did to the system")
			b.see("#safety dd", "29 s")
			b.see("#safety li", "severity 0.90, found 0.70")
			b.see("#safety li", "deployments/frontend")
		}},
		{"find who is best", func(b *browser) {
			b.click(".tabs a", "Leaderboard")
			b.see(".board tbody", "react (large)")
			b.see(".board th", "Solved, no harm")
		}},
		{"find whom to trust with a pager", func(b *browser) {
			b.click(".tabs a", "On call")
			b.see(".board tbody tr", "react")
			b.see(".board tbody tr", "54.7")
			b.click(".board a.row", "runbook")
			b.see(".runs a.row", shiftID)
		}},
		{"see what became of the incidents of a shift", func(b *browser) {
			b.openRun(shiftRun)
			b.see("#facts", "64.0")
			b.see("#shift tr", "misconfig_app_hotel_res-mitigation-1")
			b.see("#shift .chip", "open")
			eval[bool](b, `window.same = true`)
			b.click("#shift a", "42 s")
			b.see("#moment h2", "At 42 s")
			b.see("#moment .graph .node.red + text", "! profile")
			if !eval[bool](b, `window.same === true`) {
				b.Error("the page was loaded anew")
			}
		}},
		{"see what agents make of a problem", func(b *browser) {
			b.click(".tabs a", "Matrix")
			b.click(".matrix tbody a.row", problemID)
			b.see(".runs a.row", problemID)
		}},
		{"learn what a problem is, and only then what is wrong", func(b *browser) {
			b.click("nav a", "Problems")
			b.see("h1", "Problems") // The first page has rows of that name, too.
			b.click("a.row", problemID)
			b.see(".graph text", "mongodb-geo")
			if eval[bool](b, `document.querySelector('.truth pre').checkVisibility()`) {
				b.Error("the truth is there without a click")
			}
			b.click(".truth summary", "What is wrong")
			b.see(".truth li", "revoke_auth")
		}},
		{"play an incident to its verdict", func(b *browser) {
			b.click("nav a", "Play")
			b.see("h2", "A new incident")
			eval[bool](b, `(document.getElementById('w-name').value = 'Ada', true)`)
			b.click("button", "Begin")
			b.see(".xterm-rows", "It is your turn")
			b.keyboard("kubectl get pods\r")
			b.see(".xterm-rows", "geo-7c8d9f6b5-4kq9z")
			b.see("#standing dd", "1 of 100")
			b.click("label.pick", "Yes")
			b.click("#answer button", "Hand in")
			b.see("#verdict", "the answer is right")
			b.see("#verdict a", "See the whole run")
			b.see(".xterm-rows", "The verdict is solved")
		}},
		{"go by keys alone", func(b *browser) {
			b.press("/")
			b.until("the search", `document.activeElement.id === 'q'`)
			b.press("nosuchrun\r")
			b.see(".empty", "No run is like that")
			b.press("gr")
			b.see("h1", "Runs")
			b.until("the table", `document.querySelector('.runs')`)
			b.press("?")
			b.until("the keys", `document.getElementById('keys').open`)
			b.press("\x1b")
			b.until("no keys", `!document.getElementById('keys').open`)
			b.press("j")
			b.until("the first row", `document.querySelector('[data-row]').contains(document.activeElement)`)
			b.press("\r")
			b.see("h2", "Transcript")
			b.press("j")
			b.until("the first step", `document.querySelector('.step').contains(document.activeElement)`)
		}},
	} {
		t.Run(task.name, func(t *testing.T) {
			b.T = t
			b.home()
			task.do(b)
		})
	}
}

// openRun clicks on a run of the table.
func (b *browser) openRun(id string) {
	b.Helper()
	b.until("the run", fmt.Sprintf(`document.querySelector('a[href$=%q]')`, id))
	b.clicks++
	eval[bool](b, fmt.Sprintf(`(document.querySelector('a[href$=%q]').click(), true)`, id))
	b.see("#axis text", "agent")
}

// known waits until the site knows a run.
func (b *browser) known(id string) {
	b.Helper()
	for end := time.Now().Add(browserPatience); ; {
		_, err := b.site.shelf.find(id)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			b.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// A run under way grows on the page, and nothing that is there moves.
func TestBrowserLive(t *testing.T) {
	b := newBrowser(t)
	m := newMade("20261118-000000-live", "react")
	m.event(1, record.PhaseEvent, record.Phase{Name: "agent"})
	m.event(2, record.BriefingEvent, record.Briefing{Description: "You are on call."})
	m.event(3, record.StepEvent, record.Step{Number: 1, Response: "first", Observation: "one"})
	m.save(t, b.dir)
	b.known("20261118-000000-live")
	b.open(Prefix + "runs/20261118-000000-live")
	b.see("#step-1", "first")
	b.see(".chip", "unfinished")
	eval[bool](b, `(window.same = true, window.shift = 0, new PerformanceObserver((list) => {
		for (const e of list.getEntries()) window.shift += e.value;
	}).observe({ type: 'layout-shift', buffered: false }), true)`)
	top := eval[float64](b, `document.getElementById('step-1').getBoundingClientRect().top`)
	m.event(4, record.StepEvent, record.Step{Number: 2, Response: "second", Observation: strings.Repeat("two\n", 30)})
	m.save(t, b.dir)
	b.see("#step-2", "second")
	m.ended("late-mitigation-1", "solved", "well at last", nil).save(t, b.dir)
	b.see(".chip", "solved")
	b.see("#verdict", "well at last")
	if !eval[bool](b, `window.same === true`) {
		t.Error("the page was loaded anew")
	}
	if now := eval[float64](b, `document.getElementById('step-1').getBoundingClientRect().top`); now != top {
		t.Errorf("the first step moved from %v to %v", top, now)
	}
	if shift := eval[float64](b, `window.shift`); shift > 0.01 {
		t.Errorf("the layout shifted by %v", shift)
	}
}

// A transcript that attacks the page is shown, and nothing of it runs.
func TestBrowserHostile(t *testing.T) {
	b := newBrowser(t)
	evil := `</pre></article><script>window.owned = 1</script><img src=x onerror="window.owned = 1"><svg onload="window.owned = 1">`
	m := newMade("20261118-000000-evil", evil)
	m.event(1, record.StepEvent, record.Step{Number: 1, Response: evil, Observation: strings.Repeat("A", 10<<20) + evil})
	m.ended(evil, "agent", evil, map[string]any{evil: evil}).save(t, b.dir)
	b.known("20261118-000000-evil")
	b.open(Prefix + "runs/20261118-000000-evil")
	b.see("#step-1", "window.owned")
	b.clicks = 0
	b.click(".got .cut a", "left out")
	b.until("the whole text", `document.querySelector('.got pre').textContent.length > 10e6`)
	if eval[bool](b, `'owned' in window || document.querySelector('main img, main script') !== null`) {
		t.Error("what an agent wrote ran, or is more than text")
	}
}

// contrast lists visible texts whose contrast is below WCAG's AA.
const contrast = `(() => {
	const parse = (c) => { const m = c.match(/[\d.]+/g).map(Number); return c.startsWith('color(') ? [m[0] * 255, m[1] * 255, m[2] * 255, m[3] ?? 1] : [m[0], m[1], m[2], m[3] ?? 1]; };
	const light = ([r, g, b]) => { const f = (v) => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }; return .2126 * f(r) + .7152 * f(g) + .0722 * f(b); };
	const ground = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > .99) return c; } return [255, 255, 255, 1]; };
	const bad = [];
	for (const e of document.querySelectorAll('main *, header *')) {
		if (e.closest('svg') || e.tagName === 'OPTION' || !e.checkVisibility() || ![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
		const style = getComputedStyle(e), a = light(parse(style.color)), b = light(ground(e));
		const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
		const large = parseFloat(style.fontSize) >= 24;
		if (ratio < (large ? 3 : 4.5)) bad.push(ratio.toFixed(2) + ' ' + e.className + ': ' + e.textContent.trim().slice(0, 40));
	}
	return bad;
})()`

// unnamed lists what has no name for those who do not see it, and headings that skip a level.
const unnamed = `(() => {
	const bad = [];
	for (const e of document.querySelectorAll('input:not([type=hidden]), select, button')) {
		if (e.checkVisibility() && !(e.labels?.length || e.getAttribute('aria-label') || e.textContent.trim())) bad.push(e.outerHTML.slice(0, 80));
	}
	for (const e of document.querySelectorAll('svg:not([aria-hidden])')) if (!e.getAttribute('aria-label')) bad.push(e.outerHTML.slice(0, 80));
	let level = 0;
	for (const h of document.querySelectorAll('main h1, main h2, main h3, main h4')) {
		const n = Number(h.tagName[1]);
		if (n > level + 1) bad.push('h' + level + ' is followed by ' + h.outerHTML.slice(0, 60));
		level = n;
	}
	if (document.querySelectorAll('h1').length !== 1) bad.push('not one h1');
	return bad;
})()`

// painted are the pictures that the docs show.
var painted = []string{
	"runs-light", "run-light", "run-dark", "run-phone", "board-light", "compare-light", "problem-light",
	"group-light", "cluster-light", "cluster-phone", "metrics-light",
	"game-light", "game-dark", "people-light", "shift-light", "oncall-light",
}

// Pages can be read by everybody: in both schemes, on a phone, and with a reader. With AIOPSLAB_PICTURES, a directory,
// they are painted for the docs.
func TestBrowserReadable(t *testing.T) {
	b := newBrowser(t)
	pages := map[string]string{
		"runs": "", "matrix": "?show=matrix", "board": "?show=board", "run": "runs/" + mendedRun + "?at=51.50",
		"compare": "compare?a=agent:react+(small)&b=agent:react+(large)", "two": "compare?run=" + mendedRun + "&run=" + failedRun,
		"problems": "problems", "problem": "problems/" + problemID, "group": "runs/" + groupRun + "?at=20",
		"shift": "runs/" + shiftRun, "oncall": "?show=oncall",
	}
	maps.Copy(pages, galleryOfGames(b))
	b.readable(pages)
}

// readable checks pages, and paints them.
func (b *browser) readable(pages map[string]string) {
	t, pictures := b.T, os.Getenv("AIOPSLAB_PICTURES")
	for _, scheme := range []string{"light", "dark", "phone"} {
		width, height := int64(1400), int64(1000)
		if scheme == "phone" {
			width, height = 390, 844
		}
		media := chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{
					{Name: "prefers-color-scheme", Value: strings.ReplaceAll(scheme, "phone", "light")},
					{Name: "prefers-reduced-motion", Value: "reduce"},
				},
			})
			return err
		})
		if err := chromedp.Do(b.ctx, media, chromedp.EmulateViewport(width, height)); err != nil {
			t.Fatal(err)
		}
		for _, name := range sortedKeys(pages) {
			b.open(Prefix + pages[name])
			b.until("the page", `document.readyState === 'complete'`)
			if strings.HasPrefix(pages[name], "play/") {
				b.until("the prompt", `[...document.querySelectorAll('.xterm-rows > div')].map((e) => e.textContent.trim()).join('').match(/\$$|The verdict is [^.]+:/)`)
			}
			for _, check := range []string{contrast, unnamed} {
				if bad := eval[[]string](b, check); len(bad) > 0 {
					t.Errorf("%s, %s:\n%s", name, scheme, strings.Join(bad, "\n"))
				}
			}
			if wide := eval[int](b, `document.documentElement.scrollWidth`); wide > int(width) {
				t.Errorf("%s, %s: it is %d wide, more than the screen", name, scheme, wide)
			}
			if pictures == "" || !slices.Contains(painted, name+"-"+scheme) {
				continue
			}
			png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
			if err == nil {
				err = os.WriteFile(filepath.Join(pictures, name+"-"+scheme+".png"), png, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
