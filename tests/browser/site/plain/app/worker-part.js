self.part = "part";
