// Package shell is mongosh, and mongo, the shell before it: JavaScript with a database at hand.
//
// Scripts run in a real JavaScript engine. What they see is written in JavaScript, too, on top of a
// few functions of the host: types.js has the BSON types, format.js how values are shown, and api.js
// the objects. There is one connection to the server, and a command is done when its function
// returns.
package shell
