// What makes the pages smoother. All of them work without it.

const rows = () => [...document.querySelectorAll('[data-row]')];
const typing = (e) => e.target.matches('input:not([type=checkbox]), select, textarea');
const keys = document.getElementById('keys');

// move sets the focus on the row that comes after or before the one that has it.
function move(by) {
	const list = rows();
	if (!list.length) return;
	const at = list.findIndex((r) => r.contains(document.activeElement));
	const next = list[at < 0 ? (by > 0 ? 0 : list.length - 1) : Math.min(list.length - 1, Math.max(0, at + by))];
	(next.querySelector('a.row') ?? next).focus();
	next.scrollIntoView({ block: 'nearest' });
}

let before = '';
document.addEventListener('keydown', (e) => {
	if (e.key === 'Escape' && typing(e)) e.target.blur();
	if (e.ctrlKey || e.metaKey || e.altKey || typing(e)) return;
	const places = { r: '', c: 'compare', p: 'problems', l: 'cluster', y: 'play' };
	if (before === 'g' && e.key in places) location.href = '/view/' + places[e.key];
	else if (e.key === 'j') move(1);
	else if (e.key === 'k') move(-1);
	else if (e.key === '?') keys.open ? keys.close() : keys.showModal();
	else if (e.key === '/') document.querySelector('[data-search]')?.focus();
	else if (e.key === 'Enter' && e.target.matches('[data-row]')) e.target.querySelector('a')?.click();
	else { before = e.key; return; }
	before = '';
	if (e.key !== 'Enter') e.preventDefault();
});

const help = document.querySelector('.help');
help.hidden = false;
help.addEventListener('click', () => keys.showModal());

// A choice of the form counts at once, and what was left empty stays out of the address.
const form = document.querySelector('form.filters');
for (const e of document.querySelectorAll('[data-without]')) e.hidden = true;
form?.addEventListener('change', (e) => { if (e.target.matches('select:not([data-keep])')) form.requestSubmit(); });
form?.addEventListener('submit', () => {
	for (const f of form.elements) if (!f.value) f.disabled = true;
});
addEventListener('pageshow', () => { if (form) for (const f of form.elements) f.disabled = false; });

// get reads another state of this page.
async function get(url) {
	const answer = await fetch(url, { headers: { 'X-Part': '1' } });
	if (!answer.ok) throw new Error(answer.statusText);
	return new DOMParser().parseFromString(await answer.text(), 'text/html');
}

// swap puts parts of another state in the place of those of this one.
function swap(doc, ids) {
	for (const id of ids) {
		const old = document.getElementById(id), fresh = doc.getElementById(id);
		if (old && fresh) old.replaceWith(document.adoptNode(fresh));
	}
}

// mark shows which step was under way at the chosen moment.
function mark() {
	const now = document.getElementById('moment')?.dataset.step;
	for (const s of document.querySelectorAll('.step.now')) s.classList.remove('now');
	if (now) document.getElementById('step-' + now)?.classList.add('now');
	return now;
}

document.addEventListener('click', async (e) => {
	if (e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
	const link = e.target.closest('a');
	if (!link) return;
	const to = link.href.baseVal ?? link.href;
	if (link.matches('[data-rest]')) {
		e.preventDefault();
		const answer = await fetch(to);
		const pre = document.createElement('pre');
		pre.textContent = await answer.text();
		const cut = link.closest('.cut');
		cut.previousElementSibling.remove();
		cut.nextElementSibling.remove();
		cut.replaceWith(pre);
		return;
	}
	const url = new URL(to, location.href);
	if (url.pathname !== location.pathname || !url.searchParams.has('at') || !document.getElementById('moment')) return;
	e.preventDefault();
	await go(url);
});

// go shows a moment of the run.
async function go(url) {
	try {
		const doc = await get(url);
		swap(doc, ['axis', 'talk', 'moment']);
		history.replaceState(null, '', url);
		const now = mark();
		if (now) document.getElementById('step-' + now)?.scrollIntoView({ block: 'nearest' });
	} catch {
		location.href = url;
	}
}

document.addEventListener('submit', (e) => {
	if (!e.target.matches('form.query') || !document.getElementById('moment')) return;
	e.preventDefault();
	go(new URL('?' + new URLSearchParams(new FormData(e.target)), location.href));
});

// A run under way tells when there is more of it. What is there already stays where it is.
const live = document.body.dataset.live;
if (live) {
	let waiting = false, again = false;
	const more = async () => {
		if (waiting) { again = true; return; }
		waiting = true;
		const url = new URL(location.href);
		url.searchParams.set('from', document.querySelectorAll('.step[data-number]').length);
		try {
			const doc = await get(url);
			swap(doc, ['verdict', 'facts', 'axis', 'truth', 'talk', 'moment']);
			const list = document.getElementById('steps');
			for (const s of doc.querySelectorAll('#steps > .step')) {
				const old = document.getElementById(s.id);
				if (!old) list.append(document.adoptNode(s));
				else if (old.dataset.state !== s.dataset.state) old.replaceWith(document.adoptNode(s));
			}
			mark();
			if (!doc.body.dataset.live) source.close();
		} catch { /* The next event tries again. */ }
		setTimeout(() => { waiting = false; if (again) { again = false; more(); } }, 500);
	};
	const source = new EventSource(live);
	source.addEventListener('more', more);
	source.addEventListener('end', () => { source.close(); more(); });
}
mark();

// A page about what is now asks for itself again and again. What differs takes the place of what was there.
const poll = Number(document.body.dataset.poll);
if (poll) {
	const log = document.querySelector('[data-follow]');
	if (log) log.scrollTop = log.scrollHeight;
	const look = async () => {
		const url = new URL(location.href);
		const last = log?.lastElementChild?.dataset.at;
		if (last) url.searchParams.set('since', last);
		try {
			const doc = await get(url);
			for (const fresh of doc.querySelectorAll('[data-now]')) renew(document.getElementById(fresh.id), fresh);
			if (log) grow(log, doc.getElementById(log.id));
			document.body.classList.remove('stale');
		} catch {
			document.body.classList.add('stale');
		}
	};
	const again = async () => {
		if (!document.hidden) await look();
		setTimeout(again, poll);
	};
	setTimeout(again, poll);
}

// renew gives a part what another state of it has. Who was at a link of it stays there.
function renew(old, fresh) {
	if (!old || old.innerHTML === fresh.innerHTML && old.className === fresh.className) return;
	const at = old.contains(document.activeElement) && document.activeElement.getAttribute('href');
	const [left, top] = [old.scrollLeft, old.scrollTop];
	old.className = fresh.className;
	old.replaceChildren(...fresh.childNodes);
	old.scrollTo({ left, top, behavior: 'instant' });
	if (at) old.querySelector(`a[href="${CSS.escape(at)}"]`)?.focus({ preventScroll: true });
}

// grow adds lines that have come. Who reads at the end stays there; who has scrolled up is not moved.
function grow(log, fresh) {
	const end = log.scrollHeight - log.scrollTop - log.clientHeight < 24;
	const known = new Set([...log.children].slice(-600).map((l) => l.dataset.key));
	for (const l of [...fresh.children]) if (!known.has(l.dataset.key)) log.append(document.adoptNode(l));
	if (!end) return;
	while (log.children.length > 3000) log.firstElementChild.remove();
	log.scrollTop = log.scrollHeight;
}
