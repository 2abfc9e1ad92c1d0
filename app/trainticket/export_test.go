package trainticket

// Ports are where the services listen.
var Ports = ports
