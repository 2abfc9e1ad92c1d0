// Package page is the lab as people look at it: pages about runs, agents and problems, made from records on the disk.
//
//	site := page.New(page.Options{Dir: "results", Library: library})
//	fmt.Println("open http://127.0.0.1:1819" + site.Link())
//	err := http.Serve(listener, site)
//
// Everything is made by the server, from templates and from drawings that are part of the program: a page works without
// a script, which only makes it smoother, but for the terminal of an incident, and without a network. Nothing is
// written.
//
// The pages tell the truth about problems and how runs ended. Agents are HTTP clients of the same machine, and often
// without a token, so no page is for who merely reaches the server: they are for who has the link that the command
// printed, whose key is exchanged for a cookie, or the server's token. What an agent wrote is shown as text.
//
// With [Site.Host], people work on incidents here: see [Sessions]. A game knows no more of its problem than an agent
// does, and what it draws is what its steps have told.
//
// A page is a template below html/, and a function that fills it in; see [Site.routes].
package page
