self.far = "far";
