// What makes working on an incident smoother: the terminal, a clock, and forms without a new page.

// A name is asked for once.
const name = document.querySelector('[data-name]');
if (name) {
	name.value ||= localStorage.getItem('name') ?? '';
	name.form.addEventListener('submit', () => localStorage.setItem('name', name.value));
}

// The clock.
const tick = () => {
	const clock = document.querySelector('.clock[data-ends]');
	if (!clock) return;
	const left = Math.max(0, Math.round((Number(clock.dataset.ends) - Date.now()) / 1000));
	clock.textContent = Math.floor(left / 60) + ':' + String(left % 60).padStart(2, '0');
	clock.classList.toggle('late', left < 60);
};
setInterval(tick, 500);

// take puts what another state of the page has into this one. What somebody may be filling in stays as it is, unless it
// stands for something else by now.
function take(html) {
	const doc = new DOMParser().parseFromString(html, 'text/html');
	for (const id of ['standing', 'wrong', 'verdict', 'played']) put(doc, id, (old, fresh) => old.innerHTML !== fresh.innerHTML);
	for (const id of ['seen', 'told', 'answer', 'looks']) put(doc, id, (old, fresh) => old.dataset.state !== fresh.dataset.state);
	tick();
}

function put(doc, id, differs) {
	const old = document.getElementById(id), fresh = doc.getElementById(id);
	if (!old || !fresh || !differs(old, fresh)) return;
	const list = old.querySelector('details');
	const open = list?.open;
	old.replaceWith(document.adoptNode(fresh));
	if (open && id === 'played') fresh.querySelector('details').open = true;
}

// refresh asks for the page as it is now, once at a time.
let asking = false, again = false;
async function refresh() {
	if (asking) { again = true; return; }
	asking = true;
	try {
		const answer = await fetch(location.pathname);
		if (answer.ok && new URL(answer.url).pathname === location.pathname) take(await answer.text());
	} catch { /* The next news tries again. */ }
	asking = false;
	if (again) { again = false; refresh(); }
}

document.addEventListener('submit', async (e) => {
	const form = e.target;
	if (!form.matches('form.act')) return;
	e.preventDefault();
	const buttons = [...form.querySelectorAll('button')];
	for (const b of buttons) b.disabled = true;
	form.setAttribute('aria-busy', 'true');
	try {
		const answer = await fetch(form.action, { method: 'POST', body: new URLSearchParams(new FormData(form)) });
		take(await answer.text());
		if (form.querySelector('[name=look], [name=call]')) document.getElementById('seen').scrollIntoView({ block: 'nearest' });
	} catch {
		location.reload();
	}
	for (const b of buttons) b.disabled = false;
	form.removeAttribute('aria-busy');
});

document.addEventListener('click', async (e) => {
	const link = e.target.closest('a[data-step]');
	if (!link || e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
	e.preventDefault();
	const answer = await fetch(link.href);
	take(await answer.text());
	document.getElementById('seen').scrollIntoView({ block: 'nearest' });
});

// withoutStyleElements opens a terminal. It writes its rules into style elements, which the page's policy does not let
// it have; they go into style sheets that are made by script, which it does.
function withoutStyleElements(open) {
	const make = document.createElement;
	document.createElement = function (kind, ...more) {
		if (kind !== 'style') return make.call(document, kind, ...more);
		const stand = make.call(document, 'template'), sheet = new CSSStyleSheet();
		document.adoptedStyleSheets.push(sheet);
		Object.defineProperty(stand, 'textContent', { set: (text) => sheet.replaceSync(text), get: () => '' });
		return stand;
	};
	try { open(); } finally { delete document.createElement; }
}

const place = document.getElementById('terminal');
if (place && window.Terminal) {
	place.textContent = '';
	const dark = matchMedia('(prefers-color-scheme: dark)');
	const theme = () => {
		const style = getComputedStyle(document.documentElement), v = (n) => style.getPropertyValue(n).trim();
		return {
			background: v('--sunk'), foreground: v('--ink'), cursor: v('--accent'), cursorAccent: v('--sunk'),
			selectionBackground: v('--strong'), green: v('--good'), red: v('--bad'),
		};
	};
	const term = new Terminal({
		convertEol: true, cursorBlink: !matchMedia('(prefers-reduced-motion: reduce)').matches, fontSize: 13, scrollback: 5000,
		fontFamily: getComputedStyle(document.documentElement).getPropertyValue('--mono'), theme: theme(),
	});
	const fit = new FitAddon.FitAddon();
	term.loadAddon(fit);
	withoutStyleElements(() => term.open(place));
	term.attachCustomKeyEventHandler((e) => { // The keyboard is not to be caught here.
		if (e.key === 'Escape' && e.type === 'keydown') term.blur();
		return e.key !== 'Escape';
	});
	dark.addEventListener('change', () => { term.options.theme = theme(); });
	let socket, over = false, wait = 500;
	const size = () => socket?.readyState === 1 && socket.send(JSON.stringify({ cols: term.cols, rows: term.rows }));
	new ResizeObserver(() => fit.fit()).observe(place);
	term.onResize(size);
	const bytes = new TextEncoder();
	term.onData((data) => socket?.readyState === 1 && socket.send(bytes.encode(data)));
	const connect = () => {
		const url = new URL(place.dataset.socket, location.href);
		url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
		socket = new WebSocket(url);
		socket.binaryType = 'arraybuffer';
		socket.addEventListener('open', () => { term.reset(); wait = 500; fit.fit(); size(); });
		socket.addEventListener('message', (m) => {
			if (typeof m.data !== 'string') { term.write(new Uint8Array(m.data)); return; }
			over = JSON.parse(m.data).stand === 'over';
			refresh();
		});
		socket.addEventListener('close', () => {
			if (over) return;
			term.write('\r\n[The connection is gone. It is tried again.]\r\n');
			setTimeout(connect, wait = Math.min(2 * wait, 15000));
		});
	};
	connect();
	if (!matchMedia('(pointer: coarse)').matches) term.focus();
}
