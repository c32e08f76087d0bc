// The phrasebook's nouns: English singular/plural, then German with article/genitive/plural.
#include <map>

#include "heddle/base/error.h"
#include "heddle/corpora/phrasebook_lexicon.h"

namespace heddle::phrasebook {
namespace {

struct Group {
  uint32_t kinds;
  std::vector<const char*> lines;
};

const std::vector<Group>& people() {
  static const std::vector<Group> groups = {
      {kFamily,
       {"mother//die Mutter/Mutter/Mütter", "father//der Vater/Vaters/Väter",
        "brother/brothers/der Bruder/Bruders/Brüder",
        "sister/sisters/die Schwester/Schwester/Schwestern", "son/sons/der Sohn/Sohnes/Söhne",
        "daughter/daughters/die Tochter/Tochter/Töchter", "aunt/aunts/die Tante/Tante/Tanten",
        "uncle/uncles/der Onkel/Onkels/Onkel", "grandmother//die Großmutter/Großmutter/Großmütter",
        "grandfather//der Großvater/Großvaters/Großväter",
        "friend/friends/der Freund/Freundes/Freunde",
        "neighbour/neighbours/der Nachbar/Nachbarn/Nachbarn",
        "colleague/colleagues/der Kollege/Kollegen/Kollegen", "boss//der Chef/Chefs/Chefs",
        "teacher/teachers/der Lehrer/Lehrers/Lehrer", "nephew/nephews/der Neffe/Neffen/Neffen",
        "niece/nieces/die Nichte/Nichte/Nichten"}},
      {kPerson,
       {"man/men/der Mann/Mannes/Männer",
        "woman/women/die Frau/Frau/Frauen",
        "boy/boys/der Junge/Jungen/Jungen",
        "girl/girls/das Mädchen/Mädchens/Mädchen",
        "guest/guests/der Gast/Gastes/Gäste",
        "doctor/doctors/der Arzt/Arztes/Ärzte",
        "student/students/der Student/Studenten/Studenten",
        "waiter/waiters/der Kellner/Kellners/Kellner",
        "waitress/waitresses/die Kellnerin/Kellnerin/Kellnerinnen",
        "policeman/policemen/der Polizist/Polizisten/Polizisten",
        "nurse/nurses/die Krankenschwester/Krankenschwester/Krankenschwestern",
        "saleswoman/saleswomen/die Verkäuferin/Verkäuferin/Verkäuferinnen",
        "baker/bakers/der Bäcker/Bäckers/Bäcker",
        "cook/cooks/der Koch/Kochs/Köche",
        "driver/drivers/der Fahrer/Fahrers/Fahrer",
        "engineer/engineers/der Ingenieur/Ingenieurs/Ingenieure",
        "lawyer/lawyers/der Anwalt/Anwalts/Anwälte",
        "actress/actresses/die Schauspielerin/Schauspielerin/Schauspielerinnen",
        "customer/customers/der Kunde/Kunden/Kunden",
        "tourist/tourists/der Tourist/Touristen/Touristen",
        "pilot/pilots/der Pilot/Piloten/Piloten"}},
  };
  return groups;
}

const std::vector<Group>& food_and_clothes() {
  static const std::vector<Group> groups = {
      {kFood,
       {"apple/apples/der Apfel/Apfels/Äpfel", "banana/bananas/die Banane/Banane/Bananen",
        "egg/eggs/das Ei/Eis/Eier", "cake/cakes/der Kuchen/Kuchens/Kuchen",
        "pear/pears/die Birne/Birne/Birnen", "tomato/tomatoes/die Tomate/Tomate/Tomaten",
        "potato/potatoes/die Kartoffel/Kartoffel/Kartoffeln",
        "orange/oranges/die Orange/Orange/Orangen", "onion/onions/die Zwiebel/Zwiebel/Zwiebeln",
        "carrot/carrots/die Karotte/Karotte/Karotten", "roll/rolls/das Brötchen/Brötchens/Brötchen",
        "sausage/sausages/die Wurst/Wurst/Würste", "salad/salads/der Salat/Salats/Salate",
        "soup/soups/die Suppe/Suppe/Suppen",
        "strawberry/strawberries/die Erdbeere/Erdbeere/Erdbeeren",
        "lemon/lemons/die Zitrone/Zitrone/Zitronen", "biscuit/biscuits/der Keks/Kekses/Kekse"}},
      {kFoodMass,
       {"bread//das Brot/Brotes/", "cheese//der Käse/Käses/", "butter//die Butter/Butter/",
        "meat//das Fleisch/Fleisches/", "fish//der Fisch/Fisches/", "rice//der Reis/Reises/",
        "chocolate//die Schokolade/Schokolade/", "fruit//das Obst/Obstes/",
        "ham//der Schinken/Schinkens/", "jam//die Marmelade/Marmelade/"}},
      {kDrink,
       {"water//das Wasser/Wassers/", "coffee//der Kaffee/Kaffees/", "tea//der Tee/Tees/",
        "milk//die Milch/Milch/", "beer//das Bier/Biers/", "wine//der Wein/Weins/",
        "juice//der Saft/Safts/", "lemonade//die Limonade/Limonade/"}},
      {kClothes,
       {"coat/coats/der Mantel/Mantels/Mäntel", "jacket/jackets/die Jacke/Jacke/Jacken",
        "shirt/shirts/das Hemd/Hemdes/Hemden", "dress/dresses/das Kleid/Kleides/Kleider",
        "skirt/skirts/der Rock/Rocks/Röcke", "pullover/pullovers/der Pullover/Pullovers/Pullover",
        "blouse/blouses/die Bluse/Bluse/Blusen", "suit/suits/der Anzug/Anzugs/Anzüge",
        "shoe/shoes/der Schuh/Schuhs/Schuhe", "boot/boots/der Stiefel/Stiefels/Stiefel",
        "glove/gloves/der Handschuh/Handschuhs/Handschuhe", "sock/socks/die Socke/Socke/Socken",
        "=/trousers/die Hose/Hose/Hosen"}},
  };
  return groups;
}

const std::vector<Group>& things() {
  static const std::vector<Group> groups = {
      {kLying,
       {"key/keys/der Schlüssel/Schlüssels/Schlüssel",
        "umbrella/umbrellas/der Regenschirm/Regenschirms/Regenschirme",
        "ticket/tickets/die Fahrkarte/Fahrkarte/Fahrkarten",
        "hat/hats/der Hut/Hutes/Hüte",
        "scarf/scarves/der Schal/Schals/Schals",
        "cap/caps/die Mütze/Mütze/Mützen",
        "tie/ties/die Krawatte/Krawatte/Krawatten",
        "belt/belts/der Gürtel/Gürtels/Gürtel",
        "pencil/pencils/der Bleistift/Bleistifts/Bleistifte",
        "phone/phones/das Telefon/Telefons/Telefone",
        "watch/watches/die Uhr/Uhr/Uhren",
        "knife/knives/das Messer/Messers/Messer",
        "fork/forks/die Gabel/Gabel/Gabeln",
        "spoon/spoons/der Löffel/Löffels/Löffel",
        "towel/towels/das Handtuch/Handtuchs/Handtücher",
        "blanket/blankets/die Decke/Decke/Decken",
        "pillow/pillows/das Kissen/Kissens/Kissen",
        "passport/passports/der Pass/Passes/Pässe",
        "ring/rings/der Ring/Ringes/Ringe",
        "ball/balls/der Ball/Balls/Bälle",
        "wallet/wallets/der Geldbeutel/Geldbeutels/Geldbeutel",
        "parcel/parcels/das Paket/Pakets/Pakete",
        "hammer/hammers/der Hammer/Hammers/Hämmer",
        "=/glasses/die Brille/Brille/Brillen",
        "=/scissors/die Schere/Schere/Scheren"}},
      {kLying | kText,
       {"book/books/das Buch/Buches/Bücher", "letter/letters/der Brief/Briefes/Briefe",
        "newspaper/newspapers/die Zeitung/Zeitung/Zeitungen", "card/cards/die Karte/Karte/Karten",
        "magazine/magazines/die Zeitschrift/Zeitschrift/Zeitschriften",
        "contract/contracts/der Vertrag/Vertrags/Verträge",
        "report/reports/der Bericht/Berichts/Berichte", "list/lists/die Liste/Liste/Listen"}},
      {kStanding,
       {"lamp/lamps/die Lampe/Lampe/Lampen", "bottle/bottles/die Flasche/Flasche/Flaschen",
        "jug/jugs/der Krug/Kruges/Krüge", "cup/cups/die Tasse/Tasse/Tassen",
        "plate/plates/der Teller/Tellers/Teller", "bowl/bowls/die Schüssel/Schüssel/Schüsseln",
        "vase/vases/die Vase/Vase/Vasen", "pot/pots/der Topf/Topfes/Töpfe",
        "computer/computers/der Computer/Computers/Computer",
        "radio/radios/das Radio/Radios/Radios", "camera/cameras/die Kamera/Kamera/Kameras",
        "bucket/buckets/der Eimer/Eimers/Eimer", "basket/baskets/der Korb/Korbes/Körbe",
        "candle/candles/die Kerze/Kerze/Kerzen",
        "alarm clock/alarm clocks/der Wecker/Weckers/Wecker"}},
      {kStanding | kOpens,
       {"suitcase/suitcases/der Koffer/Koffers/Koffer", "bag/bags/die Tasche/Tasche/Taschen",
        "rucksack/rucksacks/der Rucksack/Rucksacks/Rucksäcke", "box/boxes/die Kiste/Kiste/Kisten"}},
      {kFurniture,
       {"table/tables/der Tisch/Tisches/Tische", "chair/chairs/der Stuhl/Stuhls/Stühle",
        "bed/beds/das Bett/Bettes/Betten", "sofa/sofas/das Sofa/Sofas/Sofas",
        "shelf/shelves/das Regal/Regals/Regale",
        "desk/desks/der Schreibtisch/Schreibtisches/Schreibtische",
        "armchair/armchairs/der Sessel/Sessels/Sessel", "bench/benches/die Bank/Bank/Bänke",
        "carpet/carpets/der Teppich/Teppichs/Teppiche",
        "mirror/mirrors/der Spiegel/Spiegels/Spiegel"}},
      {kFurniture | kOpens | kContainer,
       {"cupboard/cupboards/der Schrank/Schranks/Schränke",
        "drawer/drawers/die Schublade/Schublade/Schubladen",
        "fridge/fridges/der Kühlschrank/Kühlschranks/Kühlschränke"}},
      {kOpens,
       {"door/doors/die Tür/Tür/Türen", "window/windows/das Fenster/Fensters/Fenster",
        "gate/gates/das Tor/Tores/Tore"}},
  };
  return groups;
}

const std::vector<Group>& world() {
  static const std::vector<Group> groups = {
      {kVehicle,
       {"car/cars/das Auto/Autos/Autos", "bicycle/bicycles/das Fahrrad/Fahrrads/Fahrräder",
        "motorbike/motorbikes/das Motorrad/Motorrads/Motorräder",
        "boat/boats/das Boot/Bootes/Boote", "van/vans/der Lieferwagen/Lieferwagens/Lieferwagen"}},
      {kAnimal,
       {"dog/dogs/der Hund/Hundes/Hunde", "cat/cats/die Katze/Katze/Katzen",
        "horse/horses/das Pferd/Pferdes/Pferde", "bird/birds/der Vogel/Vogels/Vögel",
        "cow/cows/die Kuh/Kuh/Kühe", "rabbit/rabbits/das Kaninchen/Kaninchens/Kaninchen"}},
      {kBuilding,
       {"house/houses/das Haus/Hauses/Häuser", "flat/flats/die Wohnung/Wohnung/Wohnungen",
        "bridge/bridges/die Brücke/Brücke/Brücken",
        "castle/castles/das Schloss/Schlosses/Schlösser", "tower/towers/der Turm/Turmes/Türme",
        "factory/factories/die Fabrik/Fabrik/Fabriken"}},
      {kEvent,
       {"journey/journeys/die Reise/Reise/Reisen", "party/parties/die Feier/Feier/Feiern",
        "concert/concerts/das Konzert/Konzerts/Konzerte", "film/films/der Film/Films/Filme",
        "course/courses/der Kurs/Kurses/Kurse", "exam/exams/die Prüfung/Prüfung/Prüfungen",
        "meeting/meetings/die Sitzung/Sitzung/Sitzungen",
        "walk/walks/der Spaziergang/Spaziergangs/Spaziergänge",
        "trip/trips/der Ausflug/Ausflugs/Ausflüge",
        "wedding/weddings/die Hochzeit/Hochzeit/Hochzeiten", "game/games/das Spiel/Spiels/Spiele",
        "visit/visits/der Besuch/Besuchs/Besuche"}},
      {0,
       {"train/trains/der Zug/Zuges/Züge",
        "bus/buses/der Bus/Busses/Busse",
        "ship/ships/das Schiff/Schiffes/Schiffe",
        "tram/trams/die Straßenbahn/Straßenbahn/Straßenbahnen",
        "plane/planes/das Flugzeug/Flugzeugs/Flugzeuge",
        "picture/pictures/das Bild/Bildes/Bilder",
        "shop/shops/der Laden/Ladens/Läden",
        "weather//das Wetter/Wetters/",
        "colour/colours/die Farbe/Farbe/Farben",
        "price/prices/der Preis/Preises/Preise",
        "owner/owners/der Besitzer/Besitzers/Besitzer",
        "roof/roofs/das Dach/Daches/Dächer",
        "rain//der Regen/Regens/",
        "storm/storms/der Sturm/Sturms/Stürme",
        "traffic//der Verkehr/Verkehrs/",
        "snow//der Schnee/Schnees/",
        "work//die Arbeit/Arbeit/",
        "room/rooms/das Zimmer/Zimmers/Zimmer",
        "birthday/birthdays/der Geburtstag/Geburtstags/Geburtstage",
        "appointment/appointments/der Termin/Termins/Termine",
        "time//die Zeit/Zeit/",
        "money//das Geld/Geldes/",
        "holiday//der Urlaub/Urlaubs/"}},
  };
  return groups;
}

// A place ends in how one is there and how one goes there: English/German, English/German.
const std::vector<const char*>& place_lines() {
  static const std::vector<const char*> lines = {
      "station/stations/der Bahnhof/Bahnhofs/Bahnhöfe/at/an/to/zu",
      "airport/airports/der Flughafen/Flughafens/Flughäfen/at/an/to/zu",
      "harbour/harbours/der Hafen/Hafens/Häfen/at/an/to/zu",
      "beach/beaches/der Strand/Strandes/Strände/on/an/to/zu",
      "lake/lakes/der See/Sees/Seen/by/an/to/zu",
      "bakery/bakeries/die Bäckerei/Bäckerei/Bäckereien/in/in/to/zu",
      "chemist's//die Apotheke/Apotheke/Apotheken/at/in/to/zu",
      "post office/post offices/die Post/Post//at/auf/to/zu",
      "market/markets/der Markt/Marktes/Märkte/at/auf/to/auf",
      "supermarket/supermarkets/der Supermarkt/Supermarkts/Supermärkte/at/in/to/in",
      "cinema/cinemas/das Kino/Kinos/Kinos/at/in/to/in",
      "theatre/theatres/das Theater/Theaters/Theater/at/in/to/in",
      "restaurant/restaurants/das Restaurant/Restaurants/Restaurants/in/in/to/in",
      "museum/museums/das Museum/Museums/Museen/in/in/to/in",
      "school/schools/die Schule/Schule/Schulen/at/in/to/in",
      "church/churches/die Kirche/Kirche/Kirchen/in/in/to/in",
      "library/libraries/die Bibliothek/Bibliothek/Bibliotheken/in/in/to/in",
      "hospital/hospitals/das Krankenhaus/Krankenhauses/Krankenhäuser/in/in/to/in",
      "hotel/hotels/das Hotel/Hotels/Hotels/at/in/to/in",
      "office/offices/das Büro/Büros/Büros/in/in/to/in",
      "park/parks/der Park/Parks/Parks/in/in/to/in",
      "town/towns/die Stadt/Stadt/Städte/in/in/to/in",
      "village/villages/das Dorf/Dorfes/Dörfer/in/in/to/in",
      "forest/forests/der Wald/Waldes/Wälder/in/in/to/in",
      "swimming pool/swimming pools/das Schwimmbad/Schwimmbads/Schwimmbäder/in/in/to/in",
      "kitchen/kitchens/die Küche/Küche/Küchen/in/in/into/in",
      "garden/gardens/der Garten/Gartens/Gärten/in/in/into/in",
      "bathroom/bathrooms/das Badezimmer/Badezimmers/Badezimmer/in/in/into/in",
      "bedroom/bedrooms/das Schlafzimmer/Schlafzimmers/Schlafzimmer/in/in/into/in",
      "living room/living rooms/das Wohnzimmer/Wohnzimmers/Wohnzimmer/in/in/into/in",
      "cellar/cellars/der Keller/Kellers/Keller/in/in/into/in",
      "garage/garages/die Garage/Garage/Garagen/in/in/into/in",
  };
  return lines;
}

Gender gender_of(const std::string& article) {
  if (article == "der") return Gender::masculine;
  return article == "die" ? Gender::feminine : Gender::neuter;
}

// The first five fields of a line: "table", "tables", "der Tisch", "Tisches", "Tische".
Noun read_noun(const std::vector<std::string>& f, uint32_t kinds) {
  Noun n;
  n.is_pair = f[0] == "=";
  n.en_plural = f[1];
  n.en = n.is_pair ? f[1] : f[0];
  n.gender = gender_of(f[2].substr(0, 3));
  n.de = f[2].substr(4);
  n.de_genitive = f[3];
  n.de_plural = f[4];
  n.kinds = kinds;
  return n;
}

}  // namespace

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  for (char c : line) {
    if (c == '/') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

const std::vector<Noun>& nouns() {
  static const std::vector<Noun> list = [] {
    std::vector<Noun> all;
    for (const auto* groups : {&people(), &food_and_clothes(), &things(), &world()}) {
      for (const Group& group : *groups) {
        for (const char* line : group.lines) all.push_back(read_noun(fields_of(line), group.kinds));
      }
    }
    return all;
  }();
  return list;
}

const std::vector<Place>& places() {
  static const std::vector<Place> list = [] {
    std::vector<Place> all;
    for (const char* line : place_lines()) {
      const auto f = fields_of(line);
      all.push_back({read_noun(f, 0), f[5], f[6], f[7], f[8]});
    }
    return all;
  }();
  return list;
}

const Noun& noun(const std::string& en) {
  for (const Noun& n : nouns()) {
    if (n.en == en) return n;
  }
  fail(ErrorKind::internal, "phrasebook: no noun '{}' in the dictionary", en);
}

const std::vector<const Noun*>& nouns_of(uint32_t kinds) {
  // Asked for the same few sets of kinds a million times; node addresses in a map stay.
  thread_local std::map<uint32_t, std::vector<const Noun*>> known;
  const auto [entry, is_new] = known.try_emplace(kinds);
  if (is_new) {
    for (const Noun& n : nouns()) {
      if (n.kinds & kinds) entry->second.push_back(&n);
    }
  }
  return entry->second;
}

}  // namespace heddle::phrasebook
