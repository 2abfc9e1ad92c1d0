package sockshop

import (
	"fmt"
	"strings"
)

// tagNames are the tags of the catalogue, in the order of their numbers.
var tagNames = []string{
	"brown", "geek", "formal", "blue", "skin", "red", "action", "sport", "black", "magic", "green",
}

// socks are what the catalogue has.
var socks = []sock{
	{
		ID: "a0a4f044-b040-410d-8ead-4de0446aec7e", Name: "Nerd leg", Price: 7.99, Count: 115,
		Description: "For who reads in bed.", ImageURL: images("bit_of_leg_1.jpeg", "bit_of_leg_2.jpeg"),
		Tags: []string{"blue", "skin"},
	},
	{
		ID: "808a2de1-1aaa-4c25-a9b9-6612e8f29a38", Name: "Crossed", Price: 17.32, Count: 738,
		Description: "A mature pair, crossed at the ankles.", ImageURL: images("cross_1.jpeg", "cross_2.jpeg"),
		Tags: []string{"formal", "blue", "red", "action"},
	},
	{
		ID: "510a0d7e-8e83-4193-b483-e27e09ddc34d", Name: "SuperSport XL", Price: 15, Count: 820,
		Description: "Ready for action, and for laundry.", ImageURL: images("puma_1.jpeg", "puma_2.jpeg"),
		Tags: []string{"formal", "sport", "black"},
	},
	{
		ID: "03fef6ac-1896-4ce8-bd69-b798f85c6e0b", Name: "Holy", Price: 99.99, Count: 1,
		Description: "Well worn by somebody who walked on water.", ImageURL: images("holy_1.jpeg", "holy_2.jpeg"),
		Tags: []string{"action", "magic"},
	},
	{
		ID: "d3588630-ad8e-49df-bbd7-3167f7efb246", Name: "YouTube.sock", Price: 10.99, Count: 801,
		Description: "They were not made for video, but look good in it.",
		ImageURL:    images("youtube_1.jpeg", "youtube_2.jpeg"), Tags: []string{"geek", "formal"},
	},
	{
		ID: "819e1fbf-8b7e-4f6d-811f-693534916a8b", Name: "Figueroa", Price: 14, Count: 808,
		Description: "Named after a street with a long view.", ImageURL: images("WAT.jpg", "WAT2.jpg"),
		Tags: []string{"formal", "blue", "green"},
	},
	{
		ID: "zzz4f044-b040-410d-8ead-4de0446aec7e", Name: "Classic", Price: 12, Count: 127,
		Description: "Keeps its shape, as it always did.", ImageURL: images("classic.jpg", "classic2.jpg"),
		Tags: []string{"brown", "green"},
	},
	{
		ID: "3395a43e-2d88-40de-b95f-e00e1502085b", Name: "Colourful", Price: 18, Count: 438,
		Description: "All the colours that there are.", ImageURL: images("colourful_socks.jpg", "colourful_socks.jpg"),
		Tags: []string{"brown", "blue"},
	},
	{
		ID: "837ab141-399e-4c1f-9abc-bace40296bac", Name: "Cat socks", Price: 15, Count: 175,
		Description: "They land on their feet.", ImageURL: images("catsocks.jpg", "catsocks2.jpg"),
		Tags: []string{"brown", "formal", "green"},
	},
}

func images(first, second string) []string {
	return []string{"/catalogue/images/" + first, "/catalogue/images/" + second}
}

// catalogueSQL is the script that catalogue-db begins with.
func catalogueSQL() string {
	var b strings.Builder
	text := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	b.WriteString(`CREATE USER IF NOT EXISTS 'catalogue_user' IDENTIFIED BY 'default_password';
CREATE TABLE sock (
	sock_id VARCHAR(40) NOT NULL, name VARCHAR(20), description VARCHAR(200), price FLOAT, count INT,
	image_url_1 VARCHAR(40), image_url_2 VARCHAR(40), PRIMARY KEY (sock_id)
);
CREATE TABLE tag (tag_id MEDIUMINT NOT NULL AUTO_INCREMENT, name VARCHAR(20), PRIMARY KEY (tag_id));
CREATE TABLE sock_tag (sock_id VARCHAR(40), tag_id MEDIUMINT NOT NULL, KEY by_sock (sock_id));
`)
	number := map[string]int{}
	for i, t := range tagNames {
		number[t] = i + 1
		fmt.Fprintf(&b, "INSERT INTO tag (name) VALUES (%s);\n", text(t))
	}
	for _, s := range socks {
		fmt.Fprintf(&b, "INSERT INTO sock VALUES (%s, %s, %s, %g, %d, %s, %s);\n", text(s.ID), text(s.Name),
			text(s.Description), s.Price, s.Count, text(s.ImageURL[0]), text(s.ImageURL[1]))
		for _, t := range s.Tags {
			fmt.Fprintf(&b, "INSERT INTO sock_tag VALUES (%s, %d);\n", text(s.ID), number[t])
		}
	}
	return b.String()
}

// people are the customers that there are at first, with where they live and what they pay with.
var people = []struct {
	id, first, last, name, password, salt string
	street, number, city, postcode, card  string
}{
	{
		"57a98d98e4b00679b4a830af", "Eve", "Berger", "Eve_Berger", "eve", "c748112bc027878aa62812ba1ae00e40ad46d497",
		"my road", "3", "London", "EC1A 1BB", "5953580604169678",
	},
	{
		"57a98d98e4b00679b4a830b2", "User", "Name", "user", "password", "6c1c6176e8b455ef37da13d953df971c249d0d8e",
		"Whitelees Road", "246", "Glasgow", "G67 3DL", "5544154011345918",
	},
	{
		"57a98d98e4b00679b4a830b5", "User1", "Name1", "user1", "password", "bd832b0e10c6882deabc5e8e60a37689e2b708c2",
		"Maes-Y-Deri", "4", "Aberdare", "CF44 6TF", "0908415193175205",
	},
}

// usersJS is the script that user-db begins with.
func usersJS() string {
	var b strings.Builder
	b.WriteString("db = db.getSiblingDB(\"users\");\n")
	for i, p := range people {
		fmt.Fprintf(&b, "db.customers.insertOne({_id: ObjectId(%q), firstName: %q, lastName: %q, username: %q, "+
			"email: %q, salt: %q, password: %q});\n", p.id, p.first, p.last, p.name, p.name+"@example.com", p.salt,
			sum(p.salt, p.password))
		fmt.Fprintf(&b, "db.addresses.insertOne({_id: ObjectId(\"57a98d98e4b00679b4a8310%d\"), owner: %q, street: %q, "+
			"number: %q, country: \"United Kingdom\", city: %q, postcode: %q});\n", i, p.id, p.street, p.number, p.city,
			p.postcode)
		fmt.Fprintf(&b, "db.cards.insertOne({_id: ObjectId(\"57a98d98e4b00679b4a8320%d\"), owner: %q, longNum: %q, "+
			"expires: \"08/19\", ccv: \"958\"});\n", i, p.id, p.card)
	}
	// One of each that nobody owns any more.
	b.WriteString(`db.addresses.insertOne({_id: ObjectId("57a98ddce4b00679b4a830d1"), owner: "", street: "my road",
  number: "3", country: "UK", city: "London", postcode: ""});
db.cards.insertOne({_id: ObjectId("57a98ddce4b00679b4a830d2"), owner: "", longNum: "5429804235432", expires: "04/16",
  ccv: "432"});
`)
	return b.String()
}
